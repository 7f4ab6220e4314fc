#!/bin/sh
# The last words of an agent whose service failed: what systemd knows of it, as a record in the agent's own history and as
# a message to the server. It needs neither the agent's program nor Node.js, because these may be what is broken.
#
# systemd runs it after every end of the service (ExecStopPost=), before the next start: OnFailure= would be too late, as a
# unit that is always restarted fails only after its last restart. Arguments: the files that the service executes, the
# program first. What takes time, the message, is sent by a unit of its own, so that no restart waits for it.

set -u
export LC_ALL=C
umask 077

SENDER=holdfast-agent-last-words.service
SEND_SECONDS=20
# As diagnostics.log is made: node-agent/src/diagnostics/ring-file.ts.
RECORDS=512
LINE_BYTES=1024
# The same words are counted in one record for this long.
COUNTED_SECONDS=3600
# From here on a file system counts as full.
FULL_PERCENT=98

main() {
	# Stopped, restarted or upgraded as somebody wished.
	[ "${SERVICE_RESULT:-success}" != success ] || return 0
	state=${HOLDFAST_AGENT_STATE_DIR:-/etc/holdfast}
	run=${RUNTIME_DIRECTORY:-/run/holdfast-agent}
	ring=$state/diagnostics.log
	read -r boot </proc/sys/kernel/random/boot_id
	seconds=$(date +%s)
	now=$(time_of now)
	find_words "$@"
	isnew=yes line=''
	[ ! -f "$ring" ] || read_ring
	[ -n "$line" ] || new_line
	written=yes
	write_ring || written=''
	printf 'The agent ended: %s\n' "$detail"
	send_later
}

time_of() { date -u -d "$1" +%Y-%m-%dT%H:%M:%S.%3NZ; }

# --- what happened

find_words() {
	reason=agent_down exec_failure='' found=''
	if [ $# -gt 0 ]; then
		check_program "$1"
		shift
	fi
	for file in "$@"; do
		[ -s "$file" ] || missing "$file"
	done
	for place in / "$state"; do
		used=$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 { print $5 + 0 }')
		[ "${used:-0}" -ge $FULL_PERCENT ] || continue
		reason=disk_full
		found="$found; $used % of the file system of $place are used"
		break
	done
	# Nothing that would have to be escaped in JSON.
	detail=$(printf 'systemd reports %s (%s, status %s)%s' "$SERVICE_RESULT" "${EXIT_CODE:-not started}" \
		"${EXIT_STATUS:-unknown}" "$found" | tr -cd '[:alnum:] ._:;/%(),=@+-' | cut -c1-400)
}

missing() {
	exec_failure=missing
	found="$found; $1 does not exist or is empty"
}

# 203: systemd could not execute the program. The file is only read: a shell would take a damaged program for a script.
check_program() {
	if [ ! -s "$1" ]; then
		missing "$1"
	elif [ "${EXIT_STATUS:-}" = 203 ]; then
		header=$(header_of "$1")
		case $header in
		"$(header_of /proc/self/exe)") found="$found; $1 could not be executed" ;;
		2321*) found="$found; $1 could not be executed" ;;
		*)
			exec_failure=format_error
			found="$found; $1 is damaged or built for another processor"
			;;
		esac
	fi
}

# Of an ELF file: magic number, class and byte order, and the processor.
header_of() { od -An -v -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n' | cut -c1-12,37-40; }

# --- the record

# Sets the number that comes next and, if this very failure is the newest of this boot and the agent was not connected
# since, the line to count it in.
read_ring() {
	since=$(time_of "@$((seconds - COUNTED_SECONDS))")
	found=$(WORDS="\"reason\":\"$reason\",\"detail\":\"$detail\",\"instance_id\":\"$boot\"" SINCE="$since" awk '
		/^\{"seq":[0-9]+,"at":"/ {
			seq = substr($0, 8) + 0
			if (seq > last) last = seq
			if (index($0, "\"reason\":\"process_alive\"") && seq > connected) connected = seq
			if (index($0, ENVIRON["WORDS"]) && seq > own) {
				own = seq
				line = $0
			}
		}
		END {
			printf "%.0f\n", last
			at = line
			sub(/^.*"at":"/, "", at)
			if (own > connected && substr(at, 1, 24) > ENVIRON["SINCE"]) print line
		}' "$ring" 2>/dev/null) || return 0
	last=$(printf '%s\n' "$found" | sed -n 1p)
	line=$(printf '%s\n' "$found" | sed -n 2p | sed 's/ *$//')
	[ -n "$line" ] || return 0
	isnew=''
	count=$(($(printf '%s\n' "$line" | sed 's/.*"count":\([0-9]*\).*/\1/') + 1))
	line=$(printf '%s\n' "$line" | sed "s/\"count\":.*/\"count\":$count,\"last_at\":\"$now\"}/")
}

new_line() {
	# Without its file, the agent counts from here, too.
	[ "${last:-0}" -gt 0 ] && seq=$((last + 1)) || seq=$seconds
	read -r id </proc/sys/kernel/random/uuid
	host="{\"service\":\"failed\"${exec_failure:+,\"exec\":\"$exec_failure\"}}"
	line="{\"seq\":$seq,\"at\":\"$now\",\"reason\":\"$reason\",\"detail\":\"$detail\",\"instance_id\":\"$boot\""
	line="$line,\"correlation_id\":\"$id\",\"host\":$host,\"count\":1,\"last_at\":\"$now\"}"
}

# Over an old record, so that a full disk does not matter. A missing file is for the agent to make.
write_ring() {
	seq=$(printf '%s\n' "$line" | sed 's/^{"seq":\([0-9]*\).*/\1/')
	[ -f "$ring" ] && [ "$(wc -c <"$ring")" -ge $((RECORDS * LINE_BYTES)) ] || return 1
	printf "%-$((LINE_BYTES - 1))s\n" "$line" |
		dd of="$ring" bs=$LINE_BYTES seek=$((seq % RECORDS)) conv=notrunc 2>/dev/null
}

# --- the message

# Once for each record; again with its next repetition if it did not arrive.
send_later() {
	command -v curl >/dev/null 2>&1 || return 0
	mkdir -p "$run" 2>/dev/null || return 0
	[ -n "$isnew" ] || [ "$(cat "$run/sent" 2>/dev/null)" != "$seq" ] || return 0
	# A failure that cannot be recorded is new each time.
	[ -n "$written" ] || [ -z "$(find "$run/sent" -mmin -1 2>/dev/null)" ] || return 0
	printf '%s\n' "$line" | sed 's/,"count":.*/}/' >"$run/last-words.json" || return 0
	systemd-run --quiet --no-block --collect --unit="$SENDER" --property=RuntimeMaxSec=$((SEND_SECONDS + 10)) \
		/bin/sh "$0" send "$state" "$run" "$seq" "${HOLDFAST_NODE_API_URL:-}" || true
}

# As the node, with its own key and certificate, which curl reads itself.
send() {
	state=$1 run=$2 seq=$3 agent=$1/agent.json
	# The agent writes this file with two spaces for each level.
	node=$(sed -n 's/^  "node_id": "\([0-9a-f-]*\)",*$/\1/p' "$agent")
	url=$4
	for name in '  "node_api' '      "node_api' '  "api_url'; do
		[ -n "$url" ] || url=$(sed -n "s/^$name\": \"\\([^\"]*\\)\",*\$/\\1/p" "$agent")
	done
	[ -n "$node" ] && [ -n "$url" ] || return 1
	read -r boot </proc/sys/kernel/random/boot_id
	set -- -q -fsS --http1.1 --noproxy '*' --connect-timeout 5 --max-time $SEND_SECONDS -o /dev/null
	address=$(address_of "$url")
	[ -z "$address" ] || set -- "$@" --connect-to "::$address:"
	printf '{"sent_at":"%s","records":[%s]}\n' "$(time_of now)" "$(cat "$run/last-words.json")" |
		curl "$@" --cert "$state/identity.pem" --key "$state/identity.pem" --cacert "$state/trust.pem" \
			-H 'content-type: application/json' -H "x-holdfast-instance: $boot" -H "x-holdfast-boot: $boot" \
			--data-binary @- "${url%/}/internal/v1/nodes/$node/diagnostics" || return 1
	printf '%s\n' "$seq" >"$run/sent"
}

# Where there is no private DNS, the profile says which address a name has.
address_of() {
	HOST=$(printf '%s\n' "$1" | sed 's|^[a-z]*://||; s|/.*||; s|:[0-9]*$||') awk '
		/^    "resolve": \{$/ { within = 1 }
		within && /^    \}/ { exit }
		within && index($0, "      \"" ENVIRON["HOST"] "\": [") == 1 {
			getline
			gsub(/[ ",]/, "")
			print (index($0, ":") ? "[" $0 "]" : $0)
			exit
		}' "$agent"
}

if [ "${1:-}" = send ]; then
	shift
	send "$@"
else
	main "$@"
	exit 0
fi
