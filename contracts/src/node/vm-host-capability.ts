// No schema library here: agents read it too.

/** The capability of a node that can launch VMs. */
export const VM_HOST = "vm_host";

/** Bytes of a command's output in one piece. */
export const MOST_VM_OUTPUT = 64 * 1024;
