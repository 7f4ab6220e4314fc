// A VM of this host as the agent has it in memory. Everything in it is on disk as well.

import type { VmEnd } from "@holdfast/contracts/node/vm-host";
import type { ProcessIdentity } from "@holdfast/kit/processes";
import type { GuestWatch } from "./guest-watch.ts";
import type { GuestRecord, VmRecord } from "./record.generated.ts";

export type KnownVm = {
  record: VmRecord;
  state: "launching" | "running" | "terminating" | "ended";
  end: VmEnd | null;
  guest: GuestRecord;
  process?: ProcessIdentity;
  watch?: GuestWatch;
  timer?: NodeJS.Timeout;
  /** Of a warm VM: its guest has booted as far as it can without its seed. */
  isPaused?: boolean;
  /** The end of its serial console, kept when its files are removed. */
  tail: string;
  /** Called when a command in the guest has written something or ended, and when the VM ends. */
  listeners: Set<() => void>;
  /** The end that is under way: whoever wants it too waits for it. */
  ending?: Promise<void> | undefined;
};

export function launchingVm(record: VmRecord, guest?: GuestRecord): KnownVm {
  const nothing = { seed_sha256: null, session_sha256: null, connected_at: null, disconnected_at: null };
  return { record, state: "launching", end: null, guest: guest ?? nothing, tail: "", listeners: new Set() };
}
