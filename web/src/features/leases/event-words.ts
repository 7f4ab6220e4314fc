// What happened to a lease, in words, where its timeline has no message of its own.

const words: Readonly<Record<string, string>> = {
  request: "The VM was requested.",
  launch_succeeded: "The host has started QEMU; the guest boots.",
  launch_failed: "The host could not start the VM, and has removed what it had made.",
  launch_unsent: "The host was not offered the launch in time: another one is chosen.",
  launch_lost: "The host did not report whether the VM started: it is removed first.",
  guest_connected: "The guest has connected to its host.",
  guest_disconnected: "The guest has lost its connection to its host.",
  work_started: "Work has started in the VM.",
  vm_exited: "The VM has stopped by itself.",
  vm_missing: "The host does not have the VM any more.",
  connect_deadline: "The guest did not connect in time.",
  disconnect_grace: "The guest did not connect again in time.",
  ttl: "The longest time of a VM is over.",
  wait_over: "No host had room for it in time.",
  terminate: "Its end was requested.",
  abandon: "It was given up, because its host is retired.",
  terminate_succeeded: "The host has removed the VM and everything of it.",
  terminate_failed: "The host could not remove everything of the VM. It is tried again.",
  terminate_lost: "The host has not reported the removal. It is tried again.",
  host_retired: "Its host was retired.",
  stale: "The host reported something of an earlier VM of this lease.",
};

export function eventInWords(event: string): string {
  return words[event] ?? event.replaceAll("_", " ");
}
