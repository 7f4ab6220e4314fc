#!/bin/sh
# Installs Holdfast's agent as the node-agent of a VM host, under the names of the VM host runbook: settings in
# /etc/jenkins-qemu-node-agent/env, the service jenkins-qemu-node-agent (systemd) or jenkins_qemu_node_agent (rc.d, DragonFlyBSD).
# Run it from a checkout or beside an archive of the agent. It can be run again: settings are kept.
#
#   ./deploy/install-node-agent.sh [--file holdfast-agent-….tar.gz --sha256 …]

set -eu
export LC_ALL=C
here=$(cd -- "$(dirname -- "$0")" && pwd)
root=${HOLDFAST_INSTALL_ROOT:-}
ENV_DIR=$root/etc/jenkins-qemu-node-agent
NODE_MAJOR=24
AGENT_USER=jenkins-qemu-agent
LIBEXEC=$root/usr/local/libexec/holdfast-agent

say() { for line in "$@"; do printf '%s\n' "$line"; done; }
fail() {
	printf 'error: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '  %s\n' "$line" >&2; done
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

main() {
	file='' sha256=''
	while [ $# -gt 0 ]; do
		case $1 in
		--file | --sha256)
			[ $# -ge 2 ] || fail "$1 needs a value."
			[ "$1" = --file ] && file=$2 || sha256=$2
			shift
			;;
		-h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 0 ;;
		*) fail "Unknown option $1." "Usage: $0 [--file ARCHIVE --sha256 HEX]" ;;
		esac
		shift
	done
	[ -z "${NODE_AGENT_PIP_CONSTRAINT:-}" ] || say "NODE_AGENT_PIP_CONSTRAINT is set and ignored: the agent has no Python packages."
	[ "$(id -u)" = 0 ] || fail "Only root can install the agent." "Run the same command with sudo."
	case "$(uname -s)" in
	Linux) install_on_linux ;;
	DragonFly) install_on_dragonfly ;;
	*) fail "This installer supports Linux and DragonFlyBSD; this is $(uname -s)." ;;
	esac
}

# --- Linux: the agent's own installer, and the unit of the runbook

install_on_linux() {
	[ -n "$file" ] || find_archive
	sh "$here/install-agent.sh" install --file "$file" --sha256 "$sha256" --no-start
	write_settings
	install -m 0644 "$here/systemd/jenkins-qemu-node-agent.service" "$root/etc/systemd/system/jenkins-qemu-node-agent.service"
	systemctl daemon-reload
	say "Installed jenkins-qemu-node-agent.service." \
		"Fill in $ENV_DIR/env, then: systemctl enable --now jenkins-qemu-node-agent"
}

# The archive that `npm run pack-agent` made in this checkout, for this processor.
find_archive() {
	case "$(uname -m)" in
	x86_64 | amd64) arch=x64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "There is no agent for this processor ($(uname -m))." "Supported: x86_64 and aarch64." ;;
	esac
	for found in "$here"/../node-agent/dist/*"$arch"*.tar.gz "$here"/holdfast-agent-*"$arch"*.tar.gz; do
		[ -r "$found" ] && file=$found
	done
	[ -n "$file" ] ||
		fail "No archive of the agent for $arch was found." "In the checkout run: npm run pack-agent -- $arch" \
			"Or copy an archive here and pass it: --file ARCHIVE --sha256 HEX"
	# Made on this machine, so its own digest is the one to expect.
	sha256=$(sha256sum "$file" | cut -d' ' -f1)
}

# --- DragonFlyBSD: Node.js of the system's packages, daemon(8), a user of its own

install_on_dragonfly() {
	check_runtime
	has qemu-system-x86_64 || say "QEMU is not installed: this host runs no VMs until it is. Install it: pkg install qemu"
	program=$here/agent.mjs
	[ -n "$file" ] || [ ! -r "$program" ] || file=$program
	[ -n "$file" ] || find_archive_quietly
	[ -n "$file" ] || fail "No agent was found." "Copy an archive of the agent here and pass it: --file holdfast-agent-….tar.gz"
	id -u "$AGENT_USER" >/dev/null 2>&1 || pw useradd "$AGENT_USER" -d /nonexistent -s /usr/sbin/nologin -c "Holdfast agent"
	mkdir -p "$LIBEXEC"
	unpacked=
	case $file in
	*.mjs) lib=$(dirname "$file") ;;
	*)
		unpacked=$(mktemp -d)
		tar -xzf "$file" -C "$unpacked"
		lib=$(echo "$unpacked"/*/lib)
		file=$lib/agent.mjs
		;;
	esac
	# What the agent loads later comes before the agent itself. Parts of the version before stay: until it is restarted, it may load them.
	for part in "$lib"/*-*.mjs; do
		[ ! -r "$part" ] || cp "$part" "$LIBEXEC/"
	done
	cp "$file" "$LIBEXEC/agent.mjs.new"
	mv -f "$LIBEXEC/agent.mjs.new" "$LIBEXEC/agent.mjs"
	[ -z "$unpacked" ] || rm -rf "$unpacked"
	install -m 0755 "$here/agent-watchdog.sh" "$LIBEXEC/agent-watchdog.sh"
	# Bridges have to be set up first: VMs begin with the network that needs nothing.
	write_settings
	mkdir -p "$root/usr/local/etc/rc.d"
	install -m 0755 "$here/rc.d/jenkins_qemu_node_agent" "$root/usr/local/etc/rc.d/jenkins_qemu_node_agent"
	say "Installed $root/usr/local/etc/rc.d/jenkins_qemu_node_agent." \
		"Fill in $ENV_DIR/env, then:" \
		"  echo 'jenkins_qemu_node_agent_enable=\"YES\"' >>/etc/rc.conf" \
		"  service jenkins_qemu_node_agent start"
}

find_archive_quietly() {
	for found in "$here"/../node-agent/dist/*.tar.gz "$here"/holdfast-agent-*.tar.gz; do
		[ -r "$found" ] && file=$found
	done
	return 0
}

# The archive's Node.js is for Linux. Instead of a build error later, this says now what to install.
check_runtime() {
	node=/usr/local/bin/node
	[ -z "${HOLDFAST_NODE:-}" ] || node=$HOLDFAST_NODE
	offered=''
	if has pkg; then offered=$(pkg rquery '%v' "node$NODE_MAJOR" 2>/dev/null || true); fi
	if [ -n "$offered" ]; then
		fix="Install it: pkg install node$NODE_MAJOR   (the repository has $offered)"
	else
		fix="The package repository of this system does not offer node$NODE_MAJOR: upgrade the system, or build it from DPorts: lang/node$NODE_MAJOR."
	fi
	[ -x "$node" ] || fail "The agent needs Node.js $NODE_MAJOR or newer, and $node does not exist." "$fix"
	found=$("$node" --version 2>/dev/null) || fail "$node does not run." "$fix"
	major=${found#v}
	major=${major%%.*}
	case $major in '' | *[!0-9]*) fail "$node --version printed $found." "$fix" ;; esac
	[ "$major" -ge "$NODE_MAJOR" ] || fail "The agent needs Node.js $NODE_MAJOR or newer; $node is $found." "$fix"
}

# An existing file is kept.
write_settings() {
	mkdir -p "$ENV_DIR"
	[ ! -e "$ENV_DIR/env" ] || return 0
	(
		umask 077
		cat >"$ENV_DIR/env.new" <<TEXT
# Settings of the agent on this VM host, one NAME=value a line. Only root may read this file.
# A host record and its token: holdfast node token create --bootstrap --node <NODE_AGENT_HOST_ID>
NODE_AGENT_HOST_ID=
NODE_AGENT_BOOTSTRAP_TOKEN=
# https://…:18442, the node-facing address of the control plane
NODE_AGENT_CONTROL_PLANE_URL=
# For display, such as 192.0.2.10:9000; never connected to
NODE_AGENT_ADVERTISE_ADDR=
HOLDFAST_VM_HOST=on
# bridge, tap or user; bridge and tap need NODE_AGENT_NETWORK_INTERFACE
NODE_AGENT_NETWORK_BACKEND=user
NODE_AGENT_NETWORK_INTERFACE=
TEXT
	)
	mv "$ENV_DIR/env.new" "$ENV_DIR/env"
}

main "$@"
