#!/bin/busybox sh
# The small guest: loads what it needs, reads the NoCloud seed as cloud-init would, and runs its scripts.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
while read -r module; do insmod "/lib/modules/$module" 2>/dev/null; done < /lib/modules/order
mount -t iso9660 -o ro /dev/sr0 /mnt || echo "no seed"
hostname "$(sed -n 's/^local-hostname: *//p' /mnt/meta-data)"
echo "guest $(hostname) is up after $(cut -d' ' -f1 /proc/uptime) s"
sh /mnt/vendor-data
sh /mnt/user-data
# The power button arrives as an input event.
for event in /dev/input/event*; do
  (dd if="$event" bs=24 count=1 >/dev/null 2>&1 && poweroff -f) &
done
# A shell on the serial port, for consoles.
while :; do setsid cttyhack sh; done
