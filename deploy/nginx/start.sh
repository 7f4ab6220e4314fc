#!/bin/sh
# Starts nginx in a container: the configuration beside this script with the names of this installation. PUBLIC_NAME is
# the name that people and nodes use; API and GATEWAY are their addresses, if they differ from those in the files.
set -eu

source=$(dirname "$0")
target=/etc/nginx/holdfast
mkdir -p "$target"
for file in holdfast-nodes.conf holdfast-public.conf; do
  sed -e "s/nodes\.example\.com/$PUBLIC_NAME/g" -e "s/holdfast\.example\.com/$PUBLIC_NAME/g" \
    -e "s/server api-1:/server ${API:-api-1}:/" -e "s/server api-2:/server ${API:-api-2}:/" \
    -e "s/server gateway-1:/server ${GATEWAY:-gateway-1}:/" -e "s/server gateway-2:/server ${GATEWAY:-gateway-2}:/" \
    "$source/$file" > "$target/$file"
done
sed -e "s#/run/nginx\.pid#/run/nginx/nginx.pid#" "$source/nginx.conf" > "$target/nginx.conf"
exec nginx -c "$target/nginx.conf" -g 'daemon off;'
