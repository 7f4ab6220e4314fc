#!/bin/sh
# The terminal and notification WebSockets as a signed-in browser opens them through the edge.
# The edge's cookie comes from HOLDFAST_EDGE_COOKIE or --edge-cookie-file, other headers from HOLDFAST_EDGE_HEADERS or
# --edge-header-file; never as an argument, which every user of this machine could read.
set -eu
case " $* " in
  *" --allocation-id"*) ;;
  *) echo "error: --allocation-id is required: a terminal is opened through the edge" >&2; exit 2 ;;
esac
if [ -z "${HOLDFAST_EDGE_COOKIE:-}${HOLDFAST_EDGE_HEADERS:-}" ]; then
  case " $* " in
    *" --edge-cookie-file"* | *" --edge-header-file"*) ;;
    *) echo "warning: no edge authentication was given: this is no browser-equivalent proof" >&2 ;;
  esac
fi
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "${HOLDFAST_COMMAND:-$here/../../cli/bin/holdfast.mjs}" preflight --run-ws-smoke "$@"
