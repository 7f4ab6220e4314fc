#!/bin/busybox sh
# For udhcpc, which user data of a test may call.
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
for server in $dns; do echo "nameserver $server"; done > /etc/resolv.conf
ip route add default via "$router" dev "$interface"
