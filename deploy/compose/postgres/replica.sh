#!/bin/bash
# Copies the primary the first time, and then follows it.
set -euo pipefail

data=${PGDATA:?}
if [ ! -s "$data/PG_VERSION" ]; then
    PGPASSWORD=$(cat "${POSTGRES_PASSWORD_FILE:?}")
    export PGPASSWORD
    pg_basebackup --pgdata "$data" --wal-method stream --slot replica --write-recovery-conf \
        --dbname "host=${PRIMARY:?} port=${PRIMARY_PORT:-5432} user=replicator application_name=replica"
    chmod 0700 "$data"
    if [ "$(id -u)" = 0 ]; then chown -R postgres:postgres "$data"; fi
fi
if [ "$(id -u)" = 0 ]; then exec gosu postgres postgres -D "$data" "$@"; fi
exec postgres -D "$data" "$@"
