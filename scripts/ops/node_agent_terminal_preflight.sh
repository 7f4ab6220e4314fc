#!/bin/sh
# Checks a node, and a terminal on it, hop by hop: the documented name of `holdfast preflight`, with the same options.
# Prints the table to standard error while it runs and the result to standard output; --json prints one JSON value.
# Exit codes: 0 ready, 1 a failed hop, 2 wrong usage.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "${HOLDFAST_COMMAND:-$here/../../cli/bin/holdfast.mjs}" preflight "$@"
