#!/bin/sh
# Brings the addresses of a worker in line with the environment profile, without edits of /etc/hosts: hands it a signed
# recovery bundle (addresses, private resolve targets and CA together) over SSH, then checks it with a preflight.
# The profile itself is set on the server, with HOLDFAST_NODE_RESOLVE for names without private DNS.
#   reconcile_kind_external_node.sh --node-id <id or name> --node-host <host> [--node-user <user>] [options of preflight]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
holdfast=${HOLDFAST_COMMAND:-$here/../../cli/bin/holdfast.mjs}
node='' host='' user=''
previous=''
for argument in "$@"; do
  case "$previous" in
    --node-id) node=$argument ;;
    --node-host) host=$argument ;;
    --node-user) user=$argument ;;
  esac
  previous=$argument
done
if [ -z "$node" ] || [ -z "$host" ]; then
  echo "error: --node-id and --node-host are required" >&2
  exit 2
fi
case "$host$user" in
  -* | *[!A-Za-z0-9_.:%-]*) echo "error: --node-host and --node-user must be plain names" >&2; exit 2 ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The bundle's secret goes from file to standard input, never through an argument.
"$holdfast" node bundle create "$node" --out "$scratch" --json >"$scratch/created.json"
node -e 'process.stdout.write(JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).line + "\n")' \
  "$scratch/created.json" |
  ssh -o BatchMode=yes -o ConnectTimeout=5 -T ${user:+-l "$user"} -- "$host" \
    'as=""; [ "$(id -u)" = 0 ] || as="sudo -n"; exec $as holdfast agent bundle apply --line -'
"$holdfast" preflight "$@"
