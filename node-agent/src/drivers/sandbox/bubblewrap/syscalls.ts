// System calls that a script in a sandbox has no use for, with their numbers. Those that reach other processes, namespaces,
// mounts, keys, modules and clocks are denied, although most need a capability too: a fault of the kernel is out of reach then.

export type Architecture = "x64" | "arm64";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64: numbers mean something else in programs for another processor. */
export const auditArchitecture: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Newer ones are unknown here, and denied as if the kernel did not have them: removexattrat. */
export const LAST_KNOWN = 466;

/** The same on both. */
const shared = {
  ...{ io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427 },
  ...{
    open_tree: 428,
    move_mount: 429,
    fsopen: 430,
    fsconfig: 431,
    fsmount: 432,
    fspick: 433,
    mount_setattr: 442,
  },
  ...{ pidfd_getfd: 438, process_madvise: 440, quotactl_fd: 443, memfd_secret: 447, process_mrelease: 448 },
  ...{ statmount: 457, listmount: 458, lsm_get_self_attr: 459, lsm_set_self_attr: 460, lsm_list_modules: 461 },
};

export const denied: Record<Architecture, Readonly<Record<string, number>>> = {
  x64: {
    ...shared,
    ...{
      ptrace: 101,
      syslog: 103,
      uselib: 134,
      ustat: 136,
      sysfs: 139,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
    },
    ...{
      sysctl: 156,
      adjtimex: 159,
      chroot: 161,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
    },
    ...{
      swapoff: 168,
      reboot: 169,
      sethostname: 170,
      setdomainname: 171,
      iopl: 172,
      ioperm: 173,
      create_module: 174,
    },
    ...{
      init_module: 175,
      delete_module: 176,
      get_kernel_syms: 177,
      query_module: 178,
      quotactl: 179,
      nfsservctl: 180,
    },
    ...{ lookup_dcookie: 212, clock_settime: 227, kexec_load: 246, add_key: 248, request_key: 249, keyctl: 250 },
    ...{ migrate_pages: 256, unshare: 272, move_pages: 279, perf_event_open: 298, fanotify_init: 300 },
    ...{ name_to_handle_at: 303, open_by_handle_at: 304, clock_adjtime: 305, setns: 308, process_vm_readv: 310 },
    ...{ process_vm_writev: 311, kcmp: 312, finit_module: 313, kexec_file_load: 320, bpf: 321, userfaultfd: 323 },
  },
  arm64: {
    ...shared,
    ...{ lookup_dcookie: 18, umount2: 39, mount: 40, pivot_root: 41, nfsservctl: 42, chroot: 51, vhangup: 58 },
    ...{
      quotactl: 60,
      acct: 89,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
    },
    ...{
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      sethostname: 161,
      setdomainname: 162,
      settimeofday: 170,
      adjtimex: 171,
    },
    ...{
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      swapon: 224,
      swapoff: 225,
      migrate_pages: 238,
      move_pages: 239,
    },
    ...{
      perf_event_open: 241,
      fanotify_init: 262,
      name_to_handle_at: 264,
      open_by_handle_at: 265,
      clock_adjtime: 266,
    },
    ...{ setns: 268, process_vm_readv: 270, process_vm_writev: 271, kcmp: 272, finit_module: 273, bpf: 280 },
    ...{ userfaultfd: 282, kexec_file_load: 294 },
  },
};

/** Denied for some values of an argument. */
export const restricted: Record<Architecture, { clone: number; ioctl: number; socket: number }> = {
  x64: { clone: 56, ioctl: 16, socket: 41 },
  arm64: { clone: 220, ioctl: 29, socket: 198 },
};

/** Its flags are in memory, where a filter cannot see them. C libraries use clone when it is absent. */
export const CLONE3 = 435;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
export const NEW_NAMESPACES = 0x7e020000;
/** TIOCSTI and TIOCLINUX: typing into the terminal of somebody else. */
export const deniedIoctls = [0x5412, 0x541c];
/** AF_ALG, whose faults have broken kernels, and AF_VSOCK, which leads to the host of a virtual machine in every network namespace. */
export const deniedFamilies = [38, 40];
