#!/bin/sh
# Installs Holdfast's agent on this machine, joins it to a server and starts it; upgrades it in place; removes it.
# See deploy/README.md. A server hands this file out with the digests of its archives filled in below, and with a
# digest of its own, so nothing here has to trust the way it came.
#
# Everything may be interrupted at any point and run again: a version is unpacked beside the others and appears by a
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
SERVICE=holdfast-agent.service
TERMINALS='holdfast-terminal-*'
# Since when RestartSteps= is known.
BACKOFF_SINCE=254
HEALTHY_SECONDS=60

usage() {
	cat <<'TEXT'
usage: install-agent.sh [install|upgrade] [options]
       holdfast agent rollback
       holdfast agent uninstall [--keep-state] [--remove-users]

  --api URL        the server's address for nodes, as "Add a node" prints it
  --token -        read an enrollment token from standard input, and join with it; it is taken no other way, because
                   arguments can be read by every user of a machine
  --token-file F   the same, from a file
  --name NAME      what the node is called; left out, its host name
  --rejoin         join although this machine is a node already, with a token made for it
  --file F         install from this archive instead of downloading one
  --sha256 HEX     what the archive must be; only for an archive that this script does not know
  --no-start       install and join, but do not start the agent
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
	action=install api='' token_from='' name='' rejoin='' file='' sha256='' start=yes keep_state='' remove_users=''
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
		--api | --token | --token-file | --name | --file | --sha256)
			[ $# -ge 2 ] && [ -n "$2" ] || wrong_usage "$1 needs a value."
			;;
		esac
		case $1 in
		--api) api=${2%/} && shift ;;
		--token)
			[ "$2" = - ] || wrong_usage "A token on the command line could be read by every user of this machine. Give it on standard input: --token -"
			token_from=- && shift
			;;
		--token-file) token_from=$2 && shift ;;
		--name) name=$2 && shift ;;
		--file) file=$2 && shift ;;
		--sha256) sha256=$2 && shift ;;
		--rejoin) rejoin=yes ;;
		--no-start) start='' ;;
		--keep-state) keep_state=yes ;;
		--remove-users) remove_users=yes ;;
		-h | --help) usage && exit 0 ;;
		*) wrong_usage "There is no option $1." ;;
		esac
		shift
	done
}

# Standard input goes along, and with it the token.
become_root() {
	has sudo || fail "Only root can install the agent: it makes users for tenants." "Run the same line as root."
	say "Going on as root, by sudo."
	exec sudo sh "$0" "$@"
}

# --- install and upgrade

install_agent() {
	check_host
	before=$(version_of current)
	[ "$action" = install ] || [ -n "$before" ] ||
		fail "There is no agent here to upgrade." "Install it: the line is printed by \"Add a node\" or \`holdfast node token create\`."
	read_token
	take_lock
	clear_leftovers
	unpack_archive
	join_server
	was_connected=''
	is_connected && was_connected=yes
	switch_to "$new"
	write_units
	tidy_versions
	if [ -z "$start" ]; then
		done_ "Installed $new. Start it: systemctl enable --now $SERVICE"
		return
	fi
	start_agent
}

check_host() {
	[ "$(uname -s)" = Linux ] ||
		fail "This installer is for Linux, and this is $(uname -s)." "For DragonFlyBSD there is an rc.d script: see deploy/README.md."
	case "$(uname -m)" in
	x86_64 | amd64) arch=x64 served=$SERVED_X64 ;;
	aarch64 | arm64) arch=arm64 served=$SERVED_ARM64 ;;
	*) fail "There is no agent for this processor, $(uname -m)." "It runs on x86_64 and aarch64." ;;
	esac
	[ -d /run/systemd/system ] ||
		fail "This machine is not run by systemd, which starts, watches and restarts the agent." \
			"Run it under your own supervisor instead: see \"Without systemd\" in deploy/README.md."
	for tool in systemd-run systemd-notify tar gzip sha256sum mktemp readlink; do
		has "$tool" || fail "This machine has no $tool." "Install it, then run the same line again."
	done
	if [ -z "$file" ] && [ -z "$served" ]; then
		[ -n "$SERVED_VERSION" ] &&
			fail "The server has no agent for this processor, $arch." \
				"On the server run: npm run pack-agent -- $arch" "Then take a new line from \"Add a node\"."
		fail "This copy of the installer does not know which agent to download." \
			"Take the line that \"Add a node\" prints, or to upgrade the one that \`holdfast node release\` prints on the server; or give an archive with --file."
	fi
	[ -n "$file" ] || [ -n "$api" ] || api=$(joined_api)
	[ -n "$file" ] || [ -n "$api" ] || wrong_usage "Give the server's address with --api."
	[ -n "$file" ] || has curl || has wget ||
		fail "This machine has neither curl nor wget to download with." \
			"Install one of them, or bring the archive and give it with --file: see \"Offline\" in deploy/README.md."
}

read_token() {
	token=''
	case $token_from in
	'') return ;;
	-)
		[ ! -t 0 ] || fail "No token comes on standard input." "Use the whole line that \"Add a node\" printed."
		read -r token || [ -n "$token" ] || fail "Standard input was empty instead of the token." "Use the whole line that \"Add a node\" printed."
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
	flock -n 9 || fail "Another run of this installer is under way." "Wait until it has ended, then run the same line again."
}

# Of a run that was ended by force.
clear_leftovers() {
	rm -rf "$PREFIX"/incoming.* "$PREFIX"/*.new
	incoming=$(mktemp -d "$PREFIX/incoming.XXXXXX")
	trap clear_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# Where nothing was installed, nothing stays.
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
		[ -n "$want" ] || fail "What $file should be is not known." "Give its SHA-256, as \`npm run pack-agent\` printed it: --sha256 <64 digits>"
		archive=$file
	else
		archive=$incoming/archive.tar.gz
		want=$(printf '%s\n' "$served" | cut -d' ' -f2)
	fi
	label=$(printf %.16s "$want")
	# A version appears by a rename, so one that is there is whole.
	for directory in "$PREFIX/versions/"*"-$label"; do
		new=${directory##*/}
		! works "$new" || { say "Version $new is here already." && return; }
	done
	check_space
	if [ -z "$file" ]; then
		download "$api/agent/$(printf '%s\n' "$served" | cut -d' ' -f1)" "$archive"
		found=$(digest_of "$archive")
	fi
	[ "$found" = "$want" ] ||
		fail "The archive is not the one that was promised: nothing was installed." "SHA-256 expected: $want" "SHA-256 found:    $found" \
			"Take a new line from \"Add a node\"; if it happens again, something changes files on the way."
	tar -xzf "$archive" -C "$incoming" --no-same-owner 2>"$incoming/said" ||
		fail "The archive could not be unpacked: $(tail -n 1 "$incoming/said")" "Is there room below $PREFIX? df -h $PREFIX"
	tree=$incoming/holdfast-agent
	read -r version target <"$tree/VERSION"
	[ "$target" = "linux-$arch" ] || fail "The archive is for $target, and this machine is linux-$arch."
	said=$("$tree/bin/node" --version 2>&1) ||
		fail "The Node.js in the archive does not run here: $(printf %s "$said" | tail -n 1)" \
			"It needs glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8). Alpine and other systems with musl cannot run it."
	chown -R 0:0 "$tree"
	chmod -R go-w "$tree"
	new=$version-$label
	# Its files were damaged, or a run was ended before the link was made.
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
		fail "There is not enough room below $PREFIX: $((free / 1024)) MB are free, $((needed / 1024)) MB are needed." "Free some, then run the same line again."
}

# The server is believed because of the digest, not because of its certificate, which no new machine knows.
download() {
	say "Downloading $1"
	if has curl; then
		curl -fsSk --retry 5 --retry-connrefused --retry-delay 1 --connect-timeout 10 -o "$2" "$1" 2>"$incoming/said" && return
	else
		wget -q --no-check-certificate -O "$2" "$1" 2>"$incoming/said" && return
	fi
	fail "The agent could not be downloaded from $1: $(tail -n 1 "$incoming/said")" \
		"Is $api the address that this machine reaches the server at? Check name resolution, firewall and clock, then run the same line again."
}

digest_of() { sha256sum <"$1" | cut -d' ' -f1; }

version_of() { [ ! -L "$PREFIX/$1" ] || basename -- "$(readlink -- "$PREFIX/$1")"; }

works() { "$PREFIX/versions/$1/bin/node" --version >/dev/null 2>&1; }

joined_api() { sed -n 's/^ *"api_url": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true; }

join_server() {
	node=$(sed -n 's/^ *"node_name": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true)
	if [ -n "$node" ] && [ -f "$STATE/identity.pem" ] && [ -z "$rejoin" ]; then
		[ -z "$token" ] || say "This machine is the node $node already; it was not joined again."
		return
	fi
	if [ -z "$token" ]; then
		[ -n "$node" ] || grep -qs '^HOLDFAST_BOOTSTRAP_TOKEN=.' "$STATE/agent.env" || {
			say "No token was given, so this machine is not a node yet, and its agent is not started."
			start=''
		}
		return
	fi
	[ -n "$api" ] || wrong_usage "Give the server's address with --api."
	case $token in
	hfb_*)
		keep_setting HOLDFAST_BOOTSTRAP_TOKEN "$token"
		keep_setting HOLDFAST_NODE_API_URL "$api"
		done_ "The bootstrap token is in $STATE/agent.env; the agent joins with it by itself."
		return
		;;
	esac
	set -- agent join --token - --api "$api"
	[ -z "$name" ] || set -- "$@" --name "$name"
	# The reason is told by the command itself.
	printf '%s\n' "$token" | HOLDFAST_AGENT_STATE_DIR=$STATE "$PREFIX/versions/$new/bin/holdfast" "$@" >"$PREFIX/joined.new" ||
		fail "This machine did not join. The agent is unpacked, but nothing was started." "Mend what is said above, then run the same line again; a token that was used needs a new line."
	done_ "$(head -n 1 "$PREFIX/joined.new")"
	rm -f "$PREFIX/joined.new"
}

# In the env file, which only root can read.
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
	if [ -e "$COMMAND" ] && [ "$(readlink -- "$COMMAND" || true)" != "$PREFIX/current/bin/holdfast" ]; then
		say "$COMMAND is something else and was left alone; the agent's command is $PREFIX/current/bin/holdfast."
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

# Processes that still run from an older version have what they need in memory.
tidy_versions() {
	for directory in "$PREFIX"/versions/*; do
		case ${directory##*/} in
		"$(version_of current)" | "$(version_of previous)") ;;
		*) rm -rf "$directory" ;;
		esac
	done
}

# --- starting, and going back when that fails

status_text() { systemctl show -p StatusText --value "$SERVICE" 2>/dev/null || true; }

is_connected() {
	[ "$(systemctl is-active "$SERVICE" 2>/dev/null || true)" = active ] || return 1
	case "$(status_text)" in connected*) return 0 ;; *) return 1 ;; esac
}

start_agent() {
	systemctl reset-failed "$SERVICE" 2>/dev/null || true
	systemctl --quiet enable "$SERVICE" 2>/dev/null || fail "The unit could not be enabled." "See: systemctl status $SERVICE"
	[ "$before" = "$new" ] && is_connected && [ -z "$rejoin" ] && done_ "The agent runs: $(status_text)" && return
	if systemctl restart "$SERVICE" && becomes_healthy; then
		if is_connected; then
			done_ "The agent runs: $(status_text)"
		else
			say "The agent runs, but is not connected: $(status_text)"
			say "It keeps trying. To see why: holdfast agent diagnose"
		fi
		return
	fi
	why="The new agent does not work: $(status_text)"
	if [ -n "$before" ] && [ "$before" != "$new" ] && works "$before"; then
		point current "$before"
		write_units
		systemctl reset-failed "$SERVICE" 2>/dev/null || true
		if systemctl restart "$SERVICE"; then back="Version $before runs again."; else back="Version $before was put back, and does not start either."; fi
		fail "$why" "$back" "What the new one said: journalctl -u $SERVICE -n 50"
	fi
	fail "$why" "What it said: journalctl -u $SERVICE -n 50, and: holdfast agent diagnose"
}

# An agent that could reach its server before must do so again; else it is enough that it stays.
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
	[ -n "$new" ] && works "$new" || fail "There is no earlier version here to go back to."
	take_lock
	rejoin='' was_connected=''
	switch_to "$new"
	write_units
	start_agent
}

# --- uninstall

uninstall() {
	[ -d "$PREFIX" ] || [ -e "$UNIT" ] || [ -d "$STATE" ] || { say "Nothing of the agent is here." && return; }
	users=$(our_users)
	if [ -n "$users" ] && [ -z "$remove_users" ] && [ -z "$keep_state" ]; then
		fail "Users of tenants are still here: $users" \
			"Release their allocations on the server first (\`holdfast allocation release\`)," \
			"or remove them and their homes now with --remove-users, or keep them and this node's state with --keep-state."
	fi
	node=$(sed -n 's/^ *"node_name": "\([^"]*\)".*/\1/p' "$STATE/agent.json" 2>/dev/null || true)
	if has systemctl && [ -d /run/systemd/system ]; then
		systemctl --quiet disable --now "$SERVICE" 2>/dev/null || true
		# What tenants left running in their terminals ends too.
		systemctl kill --kill-who=all --signal=SIGKILL "$TERMINALS" 2>/dev/null || true
		systemctl stop "$TERMINALS" 2>/dev/null || true
	fi
	[ -z "$remove_users" ] || for user in $users; do
		userdel --force --remove "$user" 2>/dev/null || [ $? -eq 12 ] || fail "The user $user could not be removed." "Remove it with userdel, then run this again."
	done
	rm -rf "$UNIT" "$DROP_INS"
	[ "$(readlink -- "$COMMAND" 2>/dev/null || true)" != "$PREFIX/current/bin/holdfast" ] || rm -f "$COMMAND"
	if has systemctl && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl reset-failed "$SERVICE" "$TERMINALS" 2>/dev/null || true
	fi
	[ -n "$keep_state" ] || rm -rf "$STATE" /var/lib/holdfast-tenants /dev/shm/holdfast-tenants
	rm -rf "$PREFIX"
	done_ "The agent is removed."
	[ -z "$keep_state" ] || say "Its identity and settings are still in $STATE."
	[ -z "$node" ] || [ -n "$keep_state" ] || say "The server still knows the node: holdfast node retire $node"
}

# Those that the agent has written down as made by it.
our_users() {
	[ -f "$STATE/users.json" ] && [ -x "$PREFIX/current/bin/node" ] || return 0
	"$PREFIX/current/bin/node" -e '
		const { users } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
		console.log(Object.keys(users).join(" "));' "$STATE/users.json" 2>/dev/null || true
}

# Read to its end before anything runs: uninstalling removes this very file.
main "$@"
exit
