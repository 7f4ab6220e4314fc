// The NoCloud seed of a VM. Vendor data is the agent's: a script that connects the guest with the agent, and holds the channel
// open for as long as the guest runs. User data is the lease's, and both run whatever the other does.

import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { CHANNEL_NAME } from "../drivers/qemu/command.ts";
import { isoImage } from "../drivers/qemu/iso9660.ts";

const SEED_VOLUME = "cidata";

export function seedImage(wanted: Pick<VmLaunch, "vm_id" | "hostname" | "user_data">, secret: string): Buffer {
  return isoImage(SEED_VOLUME, {
    "meta-data": `instance-id: ${wanted.vm_id}\nlocal-hostname: ${wanted.hostname}\n`,
    "user-data": wanted.user_data,
    "vendor-data": connectScript(secret),
  });
}

/** Needs nothing but a POSIX shell. The secret is in variables only: arguments are visible to every user of the guest. */
function connectScript(secret: string): string {
  return `#!/bin/sh
# Connects this guest with the agent of its host.
port() {
  for found in /sys/class/virtio-ports/*; do
    read -r name 2>/dev/null < "$found/name" || continue
    if [ "$name" = ${CHANNEL_NAME} ]; then echo "/dev/\${found##*/}"; return; fi
  done
}
# Runs a command line, in base64, and reports each piece of its output at once.
run() {
  line=$(echo "$2" | base64 -d)
  code=$({ { sh -c "$line" < /dev/null 2>&1 3>&- 4>&-; echo $? >&4; } | while
      piece=$(dd bs=3072 count=1 2> /dev/null | base64 | tr -d '\\n'); [ "$piece" ]; do
        echo "out $1 $piece" >&3
      done; } 4>&1)
  echo "exit $1 $code" >&3
}
connect() {
  trap '' HUP
  secret=${secret}
  until path=$(port); [ "$path" ]; do sleep 1; done
  # Opened once, because a command that still runs has it, too, and it can be opened by one only.
  exec 3<> "$path"
  while :; do
    echo "hello $secret" >&3
    while read -r word value more <&3; do
      case $word in
        welcome) secret=$value; echo ready >&3 ;;
        denied) return 1 ;;
        run) run "$value" "$more" & ;;
      esac
    done
    sleep 1
  done
}
connect < /dev/null > /dev/null 2>&1 &
`;
}
