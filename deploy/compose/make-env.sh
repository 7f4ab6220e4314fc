#!/bin/sh
# Prints the secrets and names that compose.yaml needs. Run it once, into a file that only you can read:
#   (umask 077; ./make-env.sh holdfast.example.com > .env)
set -eu

name=${1:?the public name, such as holdfast.example.com}
operator="hfo_$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\n')"
password=$(openssl rand -hex 24)
redis=$(openssl rand -hex 24)

cat <<END
PUBLIC_NAME=$name
# For the first administrator: HOLDFAST_API_URL=https://$name HOLDFAST_TOKEN=$operator holdfast admin link
HOLDFAST_OPERATOR_TOKEN_SHA256=$(printf %s "$operator" | openssl dgst -sha256 -r | cut -d' ' -f1)
POSTGRES_PASSWORD=$password
# The owner's login, for the container that migrates; it creates the other two, which api and worker use.
HOLDFAST_DATABASE_URL=postgres://holdfast:$password@postgres:5432/holdfast
HOLDFAST_APP_DATABASE_URL=postgres://holdfast_app_login:$(openssl rand -hex 24)@postgres:5432/holdfast
HOLDFAST_SYSTEM_DATABASE_URL=postgres://holdfast_system_login:$(openssl rand -hex 24)@postgres:5432/holdfast
# Keep this separate from the database's backup: without it, everything sealed is lost.
HOLDFAST_KEK_BASE64=$(openssl rand -base64 32)
HOLDFAST_SERVICE_TOKEN=hfv_$(openssl rand -hex 32)
# For workers that dispatch steps at the gateway's internal listener, and for nobody else.
HOLDFAST_DISPATCH_TOKEN=hfg_$(openssl rand -hex 32)
HOLDFAST_INGRESS_TOKEN=$(openssl rand -hex 32)
REDIS_PASSWORD=$redis
HOLDFAST_REDIS_URL=redis://:$redis@redis:6379
END
