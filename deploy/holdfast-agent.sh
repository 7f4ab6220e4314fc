#!/bin/sh
# The `holdfast` command on a node: the agent with its own Node.js. Commands that change the installation
# are passed to the installer.

here=$(dirname -- "$(readlink -f -- "$0")")/..
case "$1 $2" in
"agent upgrade" | "agent rollback" | "agent uninstall")
	shift
	exec sh "$here/share/install-agent.sh" "$@"
	;;
esac
exec "$here/bin/node" "$here/lib/agent.mjs" "$@"
