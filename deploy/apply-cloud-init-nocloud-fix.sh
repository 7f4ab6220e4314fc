#!/bin/sh
# Pins cloud-init to the NoCloud seed. Run it as root inside a base image that is being customized, where cloud-init crashes while
# it imports other datasources (for example DataSourceAzure, which needs Python's crypt). Running it again changes nothing.
#
#   ./deploy/apply-cloud-init-nocloud-fix.sh [--root DIR]      DIR: a mounted guest; default: this system

set -eu
root=''
while [ $# -gt 0 ]; do
	case $1 in
	--root)
		[ $# -ge 2 ] && [ -d "$2" ] || {
			printf 'error: --root needs an existing directory.\n' >&2
			exit 2
		}
		root=${2%/}
		shift
		;;
	-h | --help)
		sed -n '2,5s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	*)
		printf 'error: Unknown option %s. Usage: %s [--root DIR]\n' "$1" "$0" >&2
		exit 2
		;;
	esac
	shift
done

directory=$root/etc/cloud/cloud.cfg.d
file=$directory/99-datasource-nocloud.cfg
wanted='datasource_list: [ NoCloud, None ]'

[ -d "$root/etc/cloud" ] || {
	printf 'error: %s/etc/cloud does not exist: cloud-init is not installed here.\n  Install cloud-init first, then run this again.\n' "$root" >&2
	exit 1
}
if [ -f "$file" ] && [ "$(cat "$file")" = "$wanted" ]; then
	printf '%s is in place already.\n' "$file"
	exit 0
fi
mkdir -p "$directory" 2>/dev/null && [ -w "$directory" ] || {
	printf 'error: %s cannot be written.\n  Run this as root.\n' "$directory" >&2
	exit 1
}
# By a rename: cloud-init never reads half a file.
printf '%s\n' "$wanted" >"$file.new"
chmod 0644 "$file.new"
mv -f "$file.new" "$file"
printf 'Wrote %s.\nReboot the guest, then check: cloud-init status --long, grep -i datasource /var/log/cloud-init.log\n' "$file"
