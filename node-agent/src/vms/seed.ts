// The NoCloud seed of a VM. Vendor data is the agent's: a script that connects the guest with the agent, and holds the channel
// open for as long as the guest runs. User data is the lease's, and both run whatever the other does.

import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { CHANNEL_NAME } from "../drivers/qemu/command.ts";
import { type IsoLayout, isoImage, SECTOR } from "../drivers/qemu/iso9660.ts";

const SEED_VOLUME = "cidata";

type Wanted = Pick<VmLaunch, "vm_id" | "hostname" | "user_data">;

export function seedImage(wanted: Wanted, secret: string): Buffer {
  return isoImage(SEED_VOLUME, filesOf(wanted, connectScript(secret)));
}

const filesOf = ({ vm_id, hostname, user_data }: Wanted, vendorData: string) => ({
  "meta-data": `instance-id: ${vm_id}\nlocal-hostname: ${hostname}\n`,
  "user-data": user_data,
  "vendor-data": vendorData,
});

/**
 * Of the seed of a warm VM. Its guest looks for the volume while it boots, and is paused when it reads the root directory, which is
 * far from everything that is read before, also by reading ahead, and from the end, where file systems are looked for, too. All that
 * comes before the root directory is the same whatever the seed contains, and nothing behind it has been read.
 */
const WARM_LAYOUT: IsoLayout = { rootAt: (1024 * 1024) / SECTOR, sectors: (2 * 1024 * 1024) / SECTOR };

/** In the unit of QEMU's block layer, which is 512 bytes. */
export const WARM_PAUSES_AT = (WARM_LAYOUT.rootAt * SECTOR) / 512;

/** A volume with the right name and nothing in it: a guest that read it nevertheless would find neither user data nor a secret. */
export function blankSeed(): Buffer {
  return isoImage(SEED_VOLUME, {}, WARM_LAYOUT).fill(0, WARM_LAYOUT.rootAt * SECTOR);
}

/** As large as the blank one. The clock of the guest stood still while it was paused. */
export function warmSeed(wanted: Wanted, secret: string, now: Date): Buffer {
  const seconds = Math.floor(now.getTime() / 1000);
  const setClock = `[ "$(date +%s)" -ge ${seconds} ] || date -u -s @${seconds} > /dev/null 2>&1\n`;
  return isoImage(SEED_VOLUME, filesOf(wanted, connectScript(secret, setClock)), WARM_LAYOUT);
}

/** Needs nothing but a POSIX shell. The secret is in variables only: arguments are visible to every user of the guest. */
function connectScript(secret: string, first = ""): string {
  return `#!/bin/sh
${first}# Connects this guest with the agent of its host.
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
