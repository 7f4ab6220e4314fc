#!/bin/sh
# Runs the agent where no service manager watches it: `agent-watchdog.sh <node> <agent.mjs> agent run`. It asks the agent's /healthz, which is
# 503 when the agent's main loop hangs, and ends an agent that is not healthy three times in a row; whoever runs this starts it again
# (daemon -r). A signal is passed on to the agent.

set -u
every=${HOLDFAST_WATCHDOG_SECONDS:-20}
url="http://127.0.0.1:${HOLDFAST_AGENT_PORT:-9000}/healthz"

healthy() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsS -o /dev/null --max-time 10 "$url" 2>/dev/null
	else
		fetch -q -o /dev/null -T 10 "$url" 2>/dev/null
	fi
}

"$@" &
agent=$!
stopping=''
stop() {
	stopping=yes
	kill -TERM "$agent" 2>/dev/null
}
trap stop TERM INT HUP

# In the background, so that neither a pause nor a request delays a signal or the agent's end.
(
	trap 'exit 0' TERM
	failures=0 was_healthy=''
	while sleep "$every"; do
		if healthy; then
			failures=0 was_healthy=yes
			continue
		fi
		# One that never was healthy may have another port: then it is not watched.
		[ -n "$was_healthy" ] || continue
		failures=$((failures + 1))
		[ "$failures" -ge 3 ] || continue
		echo "holdfast-agent: not healthy at $url three times in a row; it is ended and started again" >&2
		kill -KILL "$agent"
		exit 0
	done
) &
watcher=$!

while :; do
	wait "$agent"
	code=$?
	# A signal interrupts the wait; the agent may still be running.
	kill -0 "$agent" 2>/dev/null || break
done
kill -TERM "$watcher" 2>/dev/null
[ -z "$stopping" ] || exit 0
exit "$code"
