// Attempts to get out of a sandbox, a piece of Perl each: true if it got out. Debian always has Perl, and it makes system
// calls without a compiler. Each is proved on the host first, against something that the test planted or in a way that
// changes nothing; one that cannot succeed there would prove nothing in a sandbox. `$host{…}`: what was planted.

export type Escape = { name: string; attempt: string };

const files: Escape[] = [
  { name: "reads a file of the host", attempt: `slurp($host{file}) eq $host{canary}` },
  { name: "appends to a file of the host", attempt: `spill(">>", $host{log}, "escaped")` },
  {
    name: "reads a file of the host through a symbolic link",
    attempt: `symlink($host{file}, "link") && slurp("link") eq $host{canary}`,
  },
  {
    name: "reads a file of the host by way of ..",
    attempt: `slurp(("../" x 40) . substr($host{file}, 1)) eq $host{canary}`,
  },
  {
    name: "makes a hard link to a file of the host",
    attempt: `link($host{file}, "hard") && slurp("hard") eq $host{canary}`,
  },
  {
    name: "reads the working directory of another run",
    attempt: `grep { slurp($_) eq $host{canary} } glob("$host{workdirs}/*/theirs"), glob("../*/theirs")`,
  },
  {
    name: "reads a file of the host through the root of another process",
    attempt: `grep { slurp("$_$host{file}") eq $host{canary} } glob("/proc/[0-9]*/root")`,
  },
  {
    name: "opens a file by its handle",
    attempt: `
      my ($handle, $mount) = (pack("Ll", 128, 0) . "\\0" x 128, pack("l", 0));
      spill(">", "mine", "x") or return 0;
      my $file = opened("mine");
      call("name_to_handle_at", -100, my $path = "mine", $handle, $mount, 0) == 0
        && call("open_by_handle_at", fileno($file), $handle, 0) >= 0`,
  },
  {
    name: "leaves a changed root",
    attempt: `
      mkdir("cage") && chroot("cage") or return 0;
      chdir("..") for 1 .. 40;
      chroot(".") && slurp($host{file}) eq $host{canary}`,
  },
  {
    name: "writes outside of its working and temporary directories",
    attempt: `
      for my $directory (qw(/ /etc /usr /usr/bin /var /var/tmp /run /home /root /opt /srv /lib /sys /proc /mnt)) {
        my $path = "$directory/.$host{tag}";
        spill(">", $path, "x") or next;
        unlink($path);
        return 1;
      }
      0`,
  },
];

const mounts: Escape[] = [
  {
    name: "mounts a file system",
    attempt: `
      my ($type, $place) = ("tmpfs", "mnt");
      mkdir($place) && call("mount", my $none = "none", $place, $type, 0, 0) == 0 && call("umount2", $place, 2) == 0`,
  },
  { name: "creates a file system with the newer calls", attempt: `call("fsopen", my $type = "tmpfs", 0) >= 0` },
  {
    name: "makes a read-only mount writable",
    attempt: `
      my $mount = -d $host{readonly} ? $host{readonly} : "/";
      call("mount", my $none = "none", $mount, 0, 32, 0) == 0 && spill(">", "$mount/.$host{tag}", "x")`,
  },
  { name: "gets a mount namespace of its own", attempt: `call("unshare", 0x00020000) == 0` },
  { name: "gets a user namespace of its own", attempt: `call("unshare", 0x10000000) == 0` },
  {
    name: "enters the namespace of another process",
    attempt: `my $handle = opened("/proc/$host{victim}/ns/net") // return 0; call("setns", fileno($handle), 0) == 0`,
  },
];

const processes: Escape[] = [
  { name: "signals a process of the host", attempt: `kill("USR1", $host{victim}) == 1` },
  { name: "traces a process of the host", attempt: `call("ptrace", 0x4206, $host{victim}, 0, 0) == 0` },
  {
    name: "reads the environment of another process",
    attempt: `grep { index(slurp($_), $host{canary}) >= 0 } glob("/proc/[0-9]*/environ")`,
  },
  {
    name: "opens what another process has open",
    attempt: `slurp("/proc/$host{victim}/fd/$host{descriptor}") eq $host{canary}`,
  },
  {
    name: "takes a descriptor from another process",
    attempt: `my $pidfd = call("pidfd_open", $host{victim}, 0); $pidfd >= 0 && call("pidfd_getfd", $pidfd, $host{descriptor}, 0) >= 0`,
  },
  { name: "inherits a descriptor of the agent", attempt: "@inherited" },
  {
    name: "changes the limits of another process",
    attempt: `call("prlimit64", $host{victim}, 4, my $limit = pack("QQ", 0, 0), 0) == 0`,
  },
  {
    name: "starts more processes than it may",
    attempt: `
      pipe(my $wait, my $hold);
      my @started;
      for (1 .. $host{pids} + 8) {
        my $pid = fork() // last;
        if (!$pid) { close($hold); sysread($wait, my $nothing, 1); POSIX::_exit(0) }
        push(@started, $pid);
      }
      close($hold);
      waitpid($_, 0) for @started;
      @started > $host{pids}`,
  },
  { name: "raises its priority", attempt: `call("setpriority", 0, 0, -1) == 0` },
];

const privileges: Escape[] = [
  { name: "becomes root", attempt: `call("setuid", 0) == 0 && $< == 0 && slurp($host{file}) eq $host{canary}` },
  {
    name: "becomes root by a program that is setuid",
    attempt: `
      spill(">", "suid", slurp($^X)) && chown(0, 0, "suid") && chmod(04755, "suid") or return 0;
      my $pid = fork() // return 0;
      if (!$pid) {
        call("setuid", 4711);
        exec("./suid", "-e", 'exit($> == 0 ? 42 : 1)') or POSIX::_exit(1);
      }
      waitpid($pid, 0);
      $? >> 8 == 42`,
  },
  { name: "holds a capability", attempt: `slurp("/proc/self/status") =~ /^Cap(Prm|Eff|Bnd|Amb):\\s*0*[1-9a-f]/m` },
  { name: "makes system calls without a filter", attempt: `slurp("/proc/self/status") =~ /^Seccomp:\\s*0/m` },
  {
    name: "makes a device node",
    attempt: `my $path = "zero"; call("mknodat", -100, $path, 0020666, 0x105) == 0 && opened($path)`,
  },
  {
    name: "opens a device of the host",
    attempt: `
      grep { opened("/dev/$_") } qw(mem kmem port kmsg loop-control fuse kvm sda vda nvme0n1)`,
  },
];

const kernel: Escape[] = [
  {
    name: "adds a key to a keyring",
    attempt: `call("add_key", my $a = "user", my $b = "k", my $c = "v", 1, -2) >= 0`,
  },
  { name: "loads a BPF map", attempt: `call("bpf", 0, my $map = pack("LLLL", 1, 4, 4, 1) . "\\0" x 56, 72) >= 0` },
  {
    name: "counts events of the kernel",
    attempt: `call("perf_event_open", my $event = pack("LLQ", 1, 112, 9) . "\\0" x 96, 0, -1, -1, 0) >= 0`,
  },
  { name: "reads the kernel's log", attempt: `call("syslog", 10, 0, 0) > 0` },
  {
    name: "writes to /proc/sys",
    attempt: `my $path = "/proc/sys/kernel/core_pattern"; spill(">", $path, slurp($path))`,
  },
  {
    name: "writes to /sys",
    attempt: `my $path = "/sys/class/net/lo/tx_queue_len"; spill(">", $path, slurp($path))`,
  },
  {
    name: "makes a cgroup",
    attempt: `grep { mkdir("$_/$host{tag}") && rmdir("$_/$host{tag}") } "/sys/fs/cgroup", glob("/sys/fs/cgroup/*")`,
  },
  {
    name: "moves itself to another cgroup",
    attempt: `grep { -e $_ && spill(">", $_, $$) } "/sys/fs/cgroup/cgroup.procs", glob("/sys/fs/cgroup/*/cgroup.procs")`,
  },
  {
    name: "sets the host name",
    attempt: `my $name = $host{hostname}; call("sethostname", $name, length($name)) == 0`,
  },
  { name: "sets the clock", attempt: `call("settimeofday", 0, my $zone = pack("ll", 0, 0)) == 0` },
  // With numbers that mean nothing: whoever may restart the host is refused for that, others for want of a privilege.
  { name: "restarts the host", attempt: `call("reboot", 1, 2, 3, 0); $!{EINVAL}` },
];

const network: Escape[] = [
  { name: "connects to the loopback of the host", attempt: `connects("127.0.0.1", $host{port})` },
  {
    name: "connects to the metadata address",
    attempt: `
      my $handle = opened("/proc/$host{metadata}/ns/net");
      call("setns", fileno($handle), 0) if $handle;
      connects("169.254.169.254", 80)`,
  },
  { name: "connects to a socket of the host", attempt: `connectsTo($host{socket})` },
  { name: "connects to an abstract socket of the host", attempt: `connectsTo("\\0$host{abstract}")` },
  { name: "opens a raw socket", attempt: `socket(my $raw, PF_INET, SOCK_RAW, 1)` },
  { name: "opens a packet socket", attempt: `socket(my $packet, 17, SOCK_RAW, 0x0300)` },
  {
    name: "sees an interface of the host",
    attempt: `slurp("/proc/self/net/dev") =~ /^ *(?!lo:|tunl|sit|ip6|gre|erspan|dummy)\\w+:/m`,
  },
];

export const escapes: Escape[] = [...files, ...mounts, ...processes, ...privileges, ...kernel, ...network];
