#!/bin/sh
# Creates the role and the database of Reflexio. The PostgreSQL image runs this once, on an empty volume.
# Row security does not bind a superuser, so Reflexio gets a role of its own.
set -eu
psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 -v password="$REFLEXIO_DATABASE_PASSWORD" \
  --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE reflexio LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS;
CREATE DATABASE reflexio OWNER reflexio;
\connect reflexio
CREATE EXTENSION vector;
SQL
