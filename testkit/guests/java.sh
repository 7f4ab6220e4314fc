#!/bin/busybox sh
# Stands in for java with agent.jar, which the small guest has no room for: connects to a controller over WebSocket as agent.jar does,
# and reports each build as done. No answer is masked: the mask is zero.
while [ $# -gt 0 ]; do
  case $1 in
    -url) url=$2 ;;
    -name) name=$2 ;;
    -secret) read -r secret < "${2#@}" || : ;;
  esac
  shift
done
rest=${url#http://}
address=${rest%%/*}
pipe=/tmp/agent.$$
mkfifo "$pipe"
trap 'rm -f "$pipe"' EXIT
nc "${address%:*}" "${address##*:}" < "$pipe" | {
  exec 3> "$pipe"
  printf 'GET /%swsagents/ HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' "${rest#*/}" "$address" >&3
  printf 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c3RhbmQtaW4tYWdlbnQtMQ==\r\n' >&3
  printf 'Node-Name: %s\r\nSecret-Key: %s\r\nX-Remoting-Capability: stand-in\r\n\r\n' "$name" "$secret" >&3
  read -r _ status _
  echo "agent: $status"
  [ "$status" = 101 ] || exit 1
  while read -r line && [ "${#line}" -gt 1 ]; do :; done
  while set -- $(dd bs=1 count=2 2> /dev/null | od -An -tu1) && [ $# = 2 ]; do
    text=$(dd bs=1 count=$(($2 & 127)) 2> /dev/null)
    case $text in
      build\ *)
        echo "agent: $text"
        reply="done ${text#build }"
        printf "\\201\\$(printf %03o $((128 + ${#reply})))\\0\\0\\0\\0%s" "$reply" >&3
        ;;
    esac
  done
}
