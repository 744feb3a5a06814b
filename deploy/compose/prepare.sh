#!/bin/sh
# Makes the keys and passwords that compose.yaml mounts, once; none is printed.
# It needs `topstory` on the PATH, or names the image's: TOPSTORY="docker run --rm topstory".
set -eu

folder=${1:-$(dirname "$0")/secrets}
topstory=${TOPSTORY:-topstory}
if [ -e "$folder/topstory.toml" ]; then
    echo "$folder: these secrets are already there; remove the folder to make others" >&2
    exit 1
fi
mkdir -p "$folder"
# The folder is closed to others. The files are not: a container's own user reads them.
chmod 0700 "$folder"

random() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }
random 24 >"$folder/postgres_password"
random 24 >"$folder/grafana_password"

# A key is printed once, as "KEY", followed by the lines of the configuration.
new_key() { # NAME FILE ROLE…
    name=$1 file=$2
    shift 2
    options=""
    for role in "$@"; do options="$options --role $role"; done
    # shellcheck disable=SC2086 # both are lists of words
    $topstory new-key "$name" $options >"$folder/new_key"
    grep -o 'ts_[A-Za-z0-9_-]*' "$folder/new_key" | head -n 1 | tr -d '\n' >"$folder/$file"
    sed -n '/^\[\[keys\]\]/,$p' "$folder/new_key" >>"$folder/keys"
    rm "$folder/new_key"
}
new_key site site_key decide feedback
new_key editors editor_key edit read promote
new_key prometheus metrics_key read

{
    printf 'bucket_secret = "%s"\n' "$(random 32)"
    cat "$(dirname "$0")/topstory.toml"
    printf '\n[journal]\nurl = "postgresql://topstory:%s@primary/topstory"\n' "$(cat "$folder/postgres_password")"
    printf '\n[signing]\na = "%s"\n\n' "$(random 32)"
    cat "$folder/keys"
} >"$folder/topstory.toml.new"
mv "$folder/topstory.toml.new" "$folder/topstory.toml"
rm "$folder/keys"
echo "Made $folder. Keys: site_key (decide, feedback), editor_key (the studio), metrics_key."
