#!/bin/sh
# Boots a base image on this host for customization: `holdfast image boot`, found wherever the agent is installed. The guest runs on a
# copy, which is published with a new digest when the guest has shut down. Needs no server.
#
#   ./deploy/boot-base-image.sh --image /var/lib/jenkins-qemu/base/default.qcow2 --ssh-forward 2222
#
# Other flags: --accel auto|kvm|nvmm|tcg, --network user|bridge|tap, --network-if <interface>, --headless, --dry-run.

set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)

# The directories of this host, if the agent's settings name others than the defaults. Nothing in the file is executed.
for file in "${HOLDFAST_SETTINGS_ROOT:-}/etc/jenkins-qemu-node-agent/env" "${HOLDFAST_SETTINGS_ROOT:-}/etc/holdfast/agent.env"; do
	[ -r "$file" ] || continue
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		NODE_AGENT_BASE_IMAGE_DIR=/* | HOLDFAST_VM_BASE_IMAGE_DIR=/* | HOLDFAST_VM_OVERLAY_DIR=/*) export "$line" ;;
		esac
	done <"$file"
done

for program in /opt/holdfast-agent/current/lib/agent.mjs /usr/local/libexec/holdfast-agent/agent.mjs; do
	[ -r "$program" ] || continue
	for node in "$(dirname -- "$program")/../bin/node" /usr/local/bin/node; do
		[ ! -x "$node" ] || exec "$node" "$program" image boot "$@"
	done
done
# A checkout.
node=$here/../node_modules/.bin/node
[ ! -x "$node" ] || exec "$node" "$here/../cli/bin/holdfast.mjs" image boot "$@"
printf 'error: Holdfast is not installed on this host.\n  Install its agent with %s/install-node-agent.sh, then run this again.\n' "$here" >&2
exit 1
