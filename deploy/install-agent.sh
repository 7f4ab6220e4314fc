#!/bin/sh
# Installs Holdfast's agent on this machine, enrolls it with a server and starts it; upgrades it in place; removes it.
# See deploy/README.md. A server serves this file with the digests of its archives filled in below, and the install
# command contains the digest of this file, so the connection it was downloaded over need not be trusted.
#
# It can be interrupted at any point and run again: a version is unpacked beside the others and put in place by a
# rename, and which one runs is a symbolic link that is replaced by a rename.

set -eu
export LC_ALL=C

# Filled in by the server: version, and per processor "file sha256 bytes unpacked-bytes".
SERVED_VERSION=''
SERVED_X64=''
SERVED_ARM64=''

PREFIX=/opt/holdfast-agent
STATE=/etc/holdfast
UNIT=/etc/systemd/system/holdfast-agent.service
DROP_INS=/etc/systemd/system/holdfast-agent.service.d
COMMAND=/usr/local/bin/holdfast
# Outside of $PREFIX: it reports that something there is missing.
LAST_WORDS=/usr/local/bin/holdfast-agent-last-words
RUNTIME=/run/holdfast-agent
SERVICE=holdfast-agent.service
SENDER=holdfast-agent-last-words.service
TERMINALS='holdfast-terminal-*'
# Since when RestartSteps= is known.
BACKOFF_SINCE=254
HEALTHY_SECONDS=60

usage() {
	cat <<'TEXT'
usage: install-agent.sh [install|upgrade] [options]
       holdfast agent rollback
       holdfast agent uninstall [--keep-state] [--remove-users]

  --api URL        the server's URL for nodes, as printed by "Add a node"
  --token -        enroll with a token read from standard input; an argument is not accepted, because
                   every user of a machine can read arguments
  --token-file F   the same, from a file
  --name NAME      name of the node; default: its host name
  --provider NAME  whose machine this is, and
  --network-side NAME
                   where it is in the network: reported by the agent; kept in agent.env
  --rejoin         enroll again although this machine is already a node, with a token created for it
  --new-node       enroll as a new node although this machine still has the state of another one, which was retired
  --file F         install from this archive instead of downloading one
  --sha256 HEX     SHA-256 of the archive; only for an archive that this script does not know
  --no-start       install and enroll, but do not start the agent
TEXT
}

say() { printf '%s\n' "$*"; }
done_() { printf '✓ %s\n' "$*"; }

# What happened, then what to do now.
fail() {
	printf 'error: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '  %s\n' "$line" >&2; done
	exit 1
}

wrong_usage() {
	printf 'error: %s\n' "$1" >&2
	usage >&2
	exit 2
}

has() { command -v "$1" >/dev/null 2>&1; }

main() {
	action=install api='' token_from='' name='' provider='' network_side='' rejoin='' new_node='' file='' sha256='' start=yes keep_state='' remove_users=''
	case "${1:-}" in
	install | upgrade | rollback | uninstall)
		action=$1
		shift
		;;
	esac
	read_options "$@"
	[ "$(id -u)" = 0 ] || become_root "$action" "$@"
	case $action in
	install | upgrade) install_agent ;;
	rollback) roll_back ;;
	uninstall) uninstall ;;
	esac
}

read_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--api | --token | --token-file | --name | --provider | --network-side | --file | --sha256)
			[ $# -ge 2 ] && [ -n "$2" ] || wrong_usage "$1 needs a value."
			;;
		esac
		case $1 in
		--api) api=${2%/} && shift ;;
		--token)
			[ "$2" = - ] || wrong_usage "Every user of this machine could read a token on the command line. Pass it on standard input: --token -"
			token_from=- && shift
			;;
		--token-file) token_from=$2 && shift ;;
		--name) name=$2 && shift ;;
		--provider) check_label "$1" "$2" && provider=$2 && shift ;;
		--network-side) check_label "$1" "$2" && network_side=$2 && shift ;;
		--file) file=$2 && shift ;;
		--sha256) sha256=$2 && shift ;;
		--rejoin) rejoin=yes ;;
		--new-node) rejoin=yes new_node=yes ;;
		--no-start) start='' ;;
		--keep-state) keep_state=yes ;;
		--remove-users) remove_users=yes ;;
		-h | --help) usage && exit 0 ;;
		*) wrong_usage "Unknown option $1." ;;
		esac
		shift
	done
}

# As the agent takes it: with anything else it would not start.
check_label() {
	case $2 in
	[!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) wrong_usage "$1 takes letters, digits, dots, underscores and hyphens." ;;
	esac
	[ ${#2} -le 63 ] || wrong_usage "$1 takes up to 63 characters."
}

# Standard input is inherited, and with it the token.
become_root() {
	has sudo || fail "Only root can install the agent: it creates users for tenants." "Run the same command as root."
	say "Continuing as root with sudo."
	exec sudo sh "$0" "$@"
}

# --- install and upgrade

install_agent() {
	check_host
	before=$(version_of current)
	[ "$action" = install ] || [ -n "$before" ] ||
		fail "No agent is installed on this machine." "Install it with the command that \"Add a node\" or \`holdfast node token create\` prints."
	read_token
	take_lock
	clear_leftovers
	unpack_archive
	join_server
	was_connected=''
	is_connected && was_connected=yes
	switch_to "$new"
	write_units
	[ -z "$provider" ] || keep_setting HOLDFAST_NODE_PROVIDER "$provider"
	[ -z "$network_side" ] || keep_setting HOLDFAST_NODE_NETWORK_SIDE "$network_side"
	tidy_versions
	if [ -z "$start" ]; then
		done_ "Installed $new. Start it: systemctl enable --now $SERVICE"
		return
	fi
	start_agent
}

check_host() {
	[ "$(uname -s)" = Linux ] ||
		fail "This installer supports Linux only; this is $(uname -s)." "For DragonFlyBSD there is an rc.d script: see deploy/README.md."
	case "$(uname -m)" in
	x86_64 | amd64) arch=x64 served=$SERVED_X64 ;;
	aarch64 | arm64) arch=arm64 served=$SERVED_ARM64 ;;
	*) fail "There is no agent for this processor ($(uname -m))." "Supported: x86_64 and aarch64." ;;
	esac
	[ -d /run/systemd/system ] ||
		fail "This machine does not use systemd, which starts, watches and restarts the agent." \
			"Run it under your own supervisor instead: see \"Without systemd\" in deploy/README.md."
	for tool in systemd-run systemd-notify tar gzip sha256sum mktemp readlink; do
		has "$tool" || fail "$tool is not installed." "Install it, then run the same command again."
	done
	if [ -z "$file" ] && [ -z "$served" ]; then
		[ -n "$SERVED_VERSION" ] &&
			fail "The server has no agent for this processor ($arch)." \
				"On the server run: npm run pack-agent -- $arch" "Then create a new command with \"Add a node\"."
		fail "This copy of the installer does not know which agent to download." \
			"Use the command that \"Add a node\" prints, or, to upgrade, the one that \`holdfast node release\` prints on the server; or pass an archive with --file."
	fi
	[ -n "$file" ] || [ -n "$api" ] || api=$(joined_api)
	[ -n "$file" ] || [ -n "$api" ] || wrong_usage "The server's URL is missing: use --api."
	[ -n "$file" ] || has curl || has wget ||
		fail "Neither curl nor wget is installed." \
			"Install one of them, or copy the archive to this machine and use --file: see \"Offline\" in deploy/README.md."
}

read_token() {
	token=''
	case $token_from in
	'') return ;;
	-)
		[ ! -t 0 ] || fail "No token on standard input." "Use the complete command that \"Add a node\" printed."
		read -r token || [ -n "$token" ] || fail "Standard input is empty; a token was expected." "Use the complete command that \"Add a node\" printed."
		;;
	*)
		[ -r "$token_from" ] || fail "$token_from cannot be read."
		read -r token <"$token_from" || [ -n "$token" ] || fail "$token_from is empty."
		;;
	esac
}

take_lock() {
	mkdir -p "$PREFIX/versions"
	has flock || return 0
	exec 9>"$PREFIX/.lock"
	flock -n 9 || fail "Another run of this installer is in progress." "Wait until it has finished, then run the same command again."
}

# Removes what an interrupted run left behind.
clear_leftovers() {
	rm -rf "$PREFIX"/incoming.* "$PREFIX"/*.new
	incoming=$(mktemp -d "$PREFIX/incoming.XXXXXX")
	trap clear_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# If nothing was installed, nothing is left behind.
clear_up() {
	rm -rf "$incoming"
	! rmdir "$PREFIX/versions" 2>/dev/null || rm -rf "$PREFIX"
}

# Leaves the version's directory name in $new.
unpack_archive() {
	if [ -n "$file" ]; then
		[ -r "$file" ] || fail "The archive $file cannot be read."
		found=$(digest_of "$file")
		known=$(printf '%s\n' "$served" | cut -d' ' -f2)
		want=${sha256:-$known}
		[ -n "$want" ] || fail "The expected SHA-256 of $file is not known." "Pass it as \`npm run pack-agent\` printed it: --sha256 <64 digits>"
		archive=$file
	else
		archive=$incoming/archive.tar.gz
		want=$(printf '%s\n' "$served" | cut -d' ' -f2)
	fi
	label=$(printf %.16s "$want")
	# A version is put in place by a rename, so an existing one is complete.
	for directory in "$PREFIX/versions/"*"-$label"; do
		new=${directory##*/}
		! works "$new" || { say "Version $new is already installed." && return; }
	done
	check_space
	if [ -z "$file" ]; then
		download "$api/agent/$(printf '%s\n' "$served" | cut -d' ' -f1)" "$archive"
		found=$(digest_of "$archive")
	fi
	[ "$found" = "$want" ] ||
		fail "The archive has the wrong SHA-256; nothing was installed." "SHA-256 expected: $want" "SHA-256 found:    $found" \
			"Create a new command with \"Add a node\". If it happens again, something modifies files in transit."
	tar -xzf "$archive" -C "$incoming" --no-same-owner 2>"$incoming/said" ||
		fail "The archive could not be unpacked: $(tail -n 1 "$incoming/said")" "Check the free disk space: df -h $PREFIX"
	tree=$incoming/holdfast-agent
	read -r version target <"$tree/VERSION"
	[ "$target" = "linux-$arch" ] || fail "The archive is for $target; this machine is linux-$arch."
	said=$("$tree/bin/node" --version 2>&1) ||
		fail "The Node.js in the archive does not run here: $(printf %s "$said" | tail -n 1)" \
			"It needs glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8). Alpine and other systems with musl cannot run it."
	chown -R 0:0 "$tree"
	chmod -R go-w "$tree"
	new=$version-$label
	# Its files are damaged, or an earlier run was interrupted before the link was created.
	rm -rf "$PREFIX/versions/$new"
	find "$tree" -type f -exec sync {} +
	mv "$tree" "$PREFIX/versions/$new"
	rm -rf "$incoming"
	done_ "Unpacked $new"
}

check_space() {
	unpacked=$(printf '%s\n' "$served" | cut -d' ' -f4)
	needed=$(((${unpacked:-140000000} + 60000000) / 1024))
	free=$(df -Pk "$PREFIX" | awk 'NR == 2 { print $4 }')
	[ "${free:-$needed}" -ge "$needed" ] ||
		fail "Not enough disk space below $PREFIX: $((free / 1024)) MiB free, $((needed / 1024)) MiB required." "Free some space, then run the same command again."
}

# The download is trusted because of its digest, not because of the server's certificate, which a new machine cannot verify.
download() {
	say "Downloading $1"
	if has curl; then
		curl -fsSk --retry 5 --retry-connrefused --retry-delay 1 --connect-timeout 10 -o "$2" "$1" 2>"$incoming/said" && return
	else
		wget -q --no-check-certificate -O "$2" "$1" 2>"$incoming/said" && return
	fi
	fail "The agent could not be downloaded from $1: $(tail -n 1 "$incoming/said")" \
		"Check that this machine can reach the server at $api: name resolution, firewall and clock. Then run the same command again."
}

digest_of() { sha256sum <"$1" | cut -d' ' -f1; }

version_of() { [ ! -L "$PREFIX/$1" ] || basename -- "$(readlink -- "$PREFIX/$1")"; }

works() { "$PREFIX/versions/$1/bin/node" --version >/dev/null 2>&1; }

joined_api() { sed -n 's/^ *"api_url": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true; }

join_server() {
	node=$(sed -n 's/^ *"node_name": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true)
	if [ -n "$node" ] && [ -f "$STATE/identity.pem" ] && [ -z "$rejoin" ]; then
		[ -z "$token" ] || {
			say "This machine is already the node $node; it was not enrolled again."
			say "If $node was retired and this machine shall become a new node, run the same command with --new-node."
		}
		return
	fi
	if [ -z "$token" ]; then
		[ -n "$node" ] || grep -qs '^HOLDFAST_BOOTSTRAP_TOKEN=.' "$STATE/agent.env" || {
			say "No token was given, so this machine is not enrolled and its agent is not started."
			start=''
		}
		return
	fi
	[ -n "$api" ] || wrong_usage "The server's URL is missing: use --api."
	case $token in
	hfb_*)
		keep_setting HOLDFAST_BOOTSTRAP_TOKEN "$token"
		keep_setting HOLDFAST_NODE_API_URL "$api"
		# An agent that has an identity does not use it.
		[ -n "$new_node" ] || {
			done_ "The bootstrap token is in $STATE/agent.env; the agent enrolls with it automatically."
			return
		}
		;;
	esac
	set -- agent join --token - --api "$api"
	[ -z "$name" ] || set -- "$@" --name "$name"
	[ -z "$new_node" ] || set -- "$@" --force
	# The command itself prints the reason of a failure.
	printf '%s\n' "$token" | HOLDFAST_AGENT_STATE_DIR=$STATE "$PREFIX/versions/$new/bin/holdfast" "$@" >"$PREFIX/joined.new" ||
		fail "This machine could not be enrolled. The agent is unpacked, but was not started." "Correct the problem above, then run the same command again. If the token was used, create a new command."
	done_ "$(head -n 1 "$PREFIX/joined.new")"
	rm -f "$PREFIX/joined.new"
}

# Stored in the env file, which only root can read.
keep_setting() {
	write_env
	{ grep -v "^$1=" "$STATE/agent.env" || true; printf '%s=%s\n' "$1" "$2"; } | replace "$STATE/agent.env" 0600
}

write_env() {
	mkdir -p "$STATE"
	chmod 0700 "$STATE"
	[ -e "$STATE/agent.env" ] || replace "$STATE/agent.env" 0600 <<'TEXT'
# Settings of this machine's agent, one NAME=value a line; docs/reference/settings.md lists them. After a change:
# systemctl restart holdfast-agent
TEXT
}

# --- which version runs

switch_to() {
	[ "$(version_of current)" != "$1" ] || return 0
	! works "$(version_of current)" || point previous "$(version_of current)"
	point current "$1"
}

point() {
	ln -s "versions/$2" "$PREFIX/$1.new"
	mv -T "$PREFIX/$1.new" "$PREFIX/$1"
}

write_units() {
	share=$PREFIX/current/share
	mkdir -p "$(dirname "$UNIT")"
	replace "$UNIT" 0644 <"$share/holdfast-agent.service"
	if [ "$(systemctl --version | awk 'NR == 1 { print $2 + 0 }')" -ge $BACKOFF_SINCE ]; then
		mkdir -p "$DROP_INS"
		printf '[Service]\nRestartSteps=8\nRestartMaxDelaySec=120\n' | replace "$DROP_INS/backoff.conf" 0644
	fi
	write_env
	mkdir -p "$(dirname "$COMMAND")"
	# The unit of an earlier version does not call it.
	if [ -e "$share/last-words.sh" ]; then
		replace "$LAST_WORDS" 0755 <"$share/last-words.sh"
	else
		rm -f "$LAST_WORDS"
	fi
	if [ -e "$COMMAND" ] && [ "$(readlink -- "$COMMAND" || true)" != "$PREFIX/current/bin/holdfast" ]; then
		say "$COMMAND already exists and was not changed; the agent's command is $PREFIX/current/bin/holdfast."
	else
		ln -sfn "$PREFIX/current/bin/holdfast" "$COMMAND"
	fi
	systemctl daemon-reload
}

replace() {
	(umask 077 && cat >"$1.new")
	chmod "$2" "$1.new"
	mv "$1.new" "$1"
}

# Processes of an older version that are still running have everything in memory.
tidy_versions() {
	for directory in "$PREFIX"/versions/*; do
		case ${directory##*/} in
		"$(version_of current)" | "$(version_of previous)") ;;
		*) rm -rf "$directory" ;;
		esac
	done
}

# --- start, and rollback when that fails

status_text() { systemctl show -p StatusText --value "$SERVICE" 2>/dev/null || true; }

is_connected() {
	[ "$(systemctl is-active "$SERVICE" 2>/dev/null || true)" = active ] || return 1
	case "$(status_text)" in connected*) return 0 ;; *) return 1 ;; esac
}

start_agent() {
	systemctl reset-failed "$SERVICE" 2>/dev/null || true
	systemctl --quiet enable "$SERVICE" 2>/dev/null || fail "The unit could not be enabled." "See: systemctl status $SERVICE"
	[ "$before" = "$new" ] && is_connected && [ -z "$rejoin" ] && done_ "The agent is running: $(status_text)" && return
	if systemctl restart "$SERVICE" && becomes_healthy; then
		if is_connected; then
			done_ "The agent is running: $(status_text)"
		else
			say "The agent is running, but not connected: $(status_text)"
			say "It keeps retrying. To find out why, run: holdfast agent diagnose"
		fi
		return
	fi
	status=$(status_text)
	why="The new agent does not work: ${status:-its service does not start}"
	if [ -n "$before" ] && [ "$before" != "$new" ] && works "$before"; then
		point current "$before"
		write_units
		systemctl reset-failed "$SERVICE" 2>/dev/null || true
		if systemctl restart "$SERVICE"; then back="Version $before is running again."; else back="Version $before was restored, but does not start either."; fi
		fail "$why" "$back" "Log of the new version: journalctl -u $SERVICE -n 50"
	fi
	fail "$why" "Log: journalctl -u $SERVICE -n 50" "Diagnosis: holdfast agent diagnose"
}

# An agent that was connected before must connect again; otherwise it is enough that it keeps running.
becomes_healthy() {
	waited=0
	[ -n "$was_connected" ] && patience=$HEALTHY_SECONDS || patience=15
	restarts=$(systemctl show -p NRestarts --value "$SERVICE")
	while [ $waited -lt "$patience" ]; do
		is_connected && return 0
		[ "$(systemctl show -p NRestarts --value "$SERVICE")" = "$restarts" ] || return 1
		sleep 1
		waited=$((waited + 1))
	done
	[ -z "$was_connected" ]
}

roll_back() {
	before=$(version_of current)
	new=$(version_of previous)
	[ -n "$new" ] && works "$new" || fail "There is no earlier version to roll back to."
	take_lock
	rejoin='' was_connected=''
	switch_to "$new"
	write_units
	start_agent
}

# --- uninstall

uninstall() {
	[ -d "$PREFIX" ] || [ -e "$UNIT" ] || [ -d "$STATE" ] || { say "The agent is not installed." && return; }
	users=$(our_users)
	if [ -n "$users" ] && [ -z "$remove_users" ] && [ -z "$keep_state" ]; then
		fail "Tenants' users still exist on this machine: $users" \
			"Release their allocations on the server first (\`holdfast allocation release\`)," \
			"or remove them and their homes now with --remove-users, or keep them and this node's state with --keep-state."
	fi
	node=$(sed -n 's/^ *"node_name": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true)
	if has systemctl && [ -d /run/systemd/system ]; then
		systemctl --quiet disable --now "$SERVICE" 2>/dev/null || true
		# Ends what tenants left running in their terminals, too.
		systemctl kill --kill-who=all --signal=SIGKILL "$TERMINALS" 2>/dev/null || true
		systemctl stop "$TERMINALS" "$SENDER" 2>/dev/null || true
	fi
	# They outlive the agent, and nobody else would end them. With its state they are adopted by the next installation.
	[ -n "$keep_state" ] || [ ! -f "$STATE/vm-host.json" ] ||
		HOLDFAST_AGENT_STATE_DIR=$STATE "$PREFIX/current/bin/holdfast" agent remove-vms ||
		fail "The VMs of this machine could not be removed." "Correct what is said above, then run this again."
	[ -z "$remove_users" ] || for user in $users; do
		userdel --force --remove "$user" 2>/dev/null || [ $? -eq 12 ] || fail "The user $user could not be removed." "Remove it with userdel, then run this again."
	done
	rm -rf "$UNIT" "$DROP_INS" "$LAST_WORDS" "$RUNTIME"
	[ "$(readlink -- "$COMMAND" 2>/dev/null || true)" != "$PREFIX/current/bin/holdfast" ] || rm -f "$COMMAND"
	if has systemctl && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl reset-failed "$SERVICE" "$TERMINALS" 2>/dev/null || true
	fi
	[ -n "$keep_state" ] || rm -rf "$STATE" /var/lib/holdfast-tenants /dev/shm/holdfast-tenants
	rm -rf "$PREFIX"
	done_ "The agent was removed."
	[ -z "$keep_state" ] || say "Its identity and settings are still in $STATE."
	[ -z "$node" ] || [ -n "$keep_state" ] || say "The node still exists on the server. Retire it there: holdfast node retire $node"
}

# The users that the agent recorded as created by it.
our_users() {
	[ -f "$STATE/users.json" ] && [ -x "$PREFIX/current/bin/node" ] || return 0
	"$PREFIX/current/bin/node" -e '
		const { users } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
		console.log(Object.keys(users).join(" "));' "$STATE/users.json" 2>/dev/null || true
}

# The shell reads the whole file before anything runs: uninstalling removes this file.
main "$@"
exit
