#!/bin/bash
# Run by PostgreSQL's image when the database is created: the service's role and database, and
# who may read the stream of changes.
set -euo pipefail

password=$(cat "${POSTGRES_PASSWORD_FILE:?}")
psql --set ON_ERROR_STOP=1 --set password="$password" --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
CREATE ROLE topstory LOGIN PASSWORD :'password';
CREATE DATABASE topstory OWNER topstory;
CREATE ROLE replicator REPLICATION LOGIN PASSWORD :'password';
SELECT pg_create_physical_replication_slot('replica');
SQL
echo "host replication replicator all scram-sha-256" >>"${PGDATA:?}/pg_hba.conf"
