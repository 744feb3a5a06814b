#!/bin/sh
# Starts topstory in a container. The image has compiled kernels, but numba uses a cache only where
# it can write, and the root file system may be read-only: so the cache is copied first.
set -eu

compiled=${TOPSTORY_KERNELS:-/opt/topstory/kernels}
unset TOPSTORY_KERNELS # not a key of the configuration
if [ -n "${NUMBA_CACHE_DIR:-}" ] && [ -d "$compiled" ]; then
    cp -R -p "$compiled/." "$NUMBA_CACHE_DIR/"
fi
exec topstory "$@"
