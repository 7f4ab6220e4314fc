// Why a lease ended, or what it waits for, in words that contain the fix. Stored with the lease; codes are for programs.

import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import type { VmEnd } from "@holdfast/contracts/node/vm-host";

type About = {
  id: string;
  vm_id: string | null;
  host_name: string | null;
  image_id: string;
  connect_seconds: number;
  grace_seconds: number;
  ttl_seconds: number;
};

const serialLog = ({ vm_id, host_name }: About) =>
  `Its serial console is in NODE_AGENT_CLOUD_INIT_DIR/${vm_id}/serial.log on ${host_name} while the VM exists`;

export const leaseReasons = {
  no_host_in_time: ({ id }) => ({
    message: "No host could take the lease in time.",
    next_step: `Run \`holdfast lease explain ${id}\`, repair what it names for one of the hosts, and request the VM again.`,
  }),
  connect_deadline: (lease) => ({
    message: `The guest did not connect within ${lease.connect_seconds} s after the VM was started.`,
    next_step:
      `Check that cloud-init is enabled in the image ${lease.image_id} and finds its NoCloud seed (the CD-ROM cidata). ` +
      `${serialLog(lease)}; the result of the task vm.terminate has its end.`,
  }),
  disconnected: (lease) => ({
    message: `The guest was disconnected for more than ${lease.grace_seconds} s.`,
    next_step:
      "Request the VM again. If it happens often, read the end of its serial console in the task vm.terminate.",
  }),
  ttl: (lease) => ({
    message: `The VM reached the end of its time to live, ${lease.ttl_seconds} s.`,
    next_step: "Request a longer one with `--ttl`, or find out why its work takes so long.",
  }),
  launch_lost: (lease) => ({
    message: `${lease.host_name} did not report whether the VM was started.`,
    next_step: `The VM is removed if it exists. Check the host with \`holdfast node show ${lease.host_name}\`, and request the VM again.`,
  }),
  launch_unsent: (lease) => ({
    message: `${lease.host_name} did not take the launch task in time, so another host may.`,
    next_step: `No action is needed. To check the host, run \`holdfast node show ${lease.host_name}\`.`,
  }),
  guest_off: () => ({
    message: "The guest shut itself down.",
    next_step: "No action is needed if that was its work.",
  }),
  process_gone: (lease) => ({
    message: `The VM's process ended on ${lease.host_name}.`,
    next_step: "Check the host's memory and kernel log: QEMU was killed or crashed. Then request the VM again.",
  }),
  removed_on_host: (lease) => ({
    message: `${lease.host_name} removed the VM by itself.`,
    next_step: `The agent's log on ${lease.host_name} says why. Request the VM again.`,
  }),
  vm_missing: (lease) => ({
    message: `${lease.host_name} no longer has the VM.`,
    next_step:
      "What is left of it is removed automatically. Check whether somebody removed it on the host by hand, and request the VM again.",
  }),
  terminate_lost: (lease) => ({
    message: `${lease.host_name} did not confirm that the VM is removed. The task is queued again until it does.`,
    next_step: `No action is needed if the host comes back. To check it, run \`holdfast node show ${lease.host_name}\`.`,
  }),
  host_retired: (lease) => ({
    message: `${lease.host_name} was retired, so nothing can confirm that the VM ${lease.vm_id} is gone.`,
    next_step: `If the machine still runs, end the VM there. Then run \`holdfast lease terminate ${lease.id}\`.`,
  }),
  abandoned: (lease) => ({
    message: `Ended by a person. ${lease.host_name} was retired: whether the VM ${lease.vm_id} is gone was not confirmed.`,
    next_step: "If the machine still runs, check there that no VM of it is left.",
  }),
} as const satisfies Record<string, (lease: About) => { message: string; next_step: string }>;

export type LeaseReasonCode = keyof typeof leaseReasons;
export type AboutLease = About;

export function leaseReason(code: LeaseReasonCode, lease: About): TaskFailure {
  return { code, ...leaseReasons[code](lease) };
}

/** Of a VM that its host ended by itself. */
export const reasonOfEnd: Record<VmEnd, LeaseReasonCode> = {
  ttl: "ttl",
  connect_deadline: "connect_deadline",
  disconnected: "disconnected",
  guest_off: "guest_off",
  process_gone: "process_gone",
  terminated: "removed_on_host",
  no_lease: "removed_on_host",
};
