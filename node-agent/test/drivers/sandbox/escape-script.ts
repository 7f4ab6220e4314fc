// All attempts of escapes.ts as one script, because a container costs most of a second. Each is made by a process of its own,
// so that none changes what the others find, and prints its number and what came of it.

import { type Escape, escapes } from "./escapes.ts";
import type { Planted } from "./planted.ts";

/** Of x64 and of arm64. */
const systemCalls: Record<string, [number, number]> = {
  add_key: [248, 217],
  bpf: [321, 280],
  fsopen: [430, 430],
  mknodat: [259, 33],
  mount: [165, 40],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  perf_event_open: [298, 241],
  pidfd_getfd: [438, 438],
  pidfd_open: [434, 434],
  prlimit64: [302, 261],
  ptrace: [101, 117],
  reboot: [169, 142],
  sethostname: [170, 161],
  setns: [308, 268],
  setpriority: [141, 140],
  settimeofday: [164, 170],
  setuid: [105, 146],
  syslog: [103, 116],
  umount2: [166, 39],
  unshare: [272, 97],
};

const PRELUDE = `
use strict; use warnings; use Socket; use Errno; use POSIX ();
no warnings;
opendir(my $descriptors, "/proc/self/fd");
my @inherited = grep {
  /^\\d+$/ && $_ > 2 && readlink("/proc/self/fd/$_") !~ m{^/dev/null$|^/proc/\\d+/fd$}
} readdir($descriptors);
closedir($descriptors);
$| = 1;
sub call { my $number = $number{$_[0]} // die("no number of $_[0]"); shift; $! = 0; syscall($number, @_) }
sub opened { open(my $handle, "<", $_[0]) or return; $handle }
sub slurp { my $handle = opened($_[0]) // return ""; local $/; readline($handle) // "" }
sub spill { my ($mode, $path, $text) = @_; open(my $handle, $mode, $path) or return 0; syswrite($handle, $text) && close($handle) }
sub connects {
  my ($address, $port) = @_;
  socket(my $handle, PF_INET, SOCK_STREAM, 0) or return 0;
  connect($handle, pack_sockaddr_in($port, inet_aton($address)));
}
sub connectsTo { socket(my $handle, PF_UNIX, SOCK_STREAM, 0) or return 0; connect($handle, pack_sockaddr_un($_[0])) }
sub attempt {
  my ($index, $code) = @_;
  my $pid = fork() // die("fork: $!");
  if (!$pid) {
    mkdir($index);
    chdir($index);
    alarm(20);
    my $escaped = eval { my @found = $code->(); $found[0] };
    print("$index ", $@ ? "broken $@" : $escaped ? "escaped" : "held", "\\n");
    POSIX::_exit(0);
  }
  waitpid($pid, 0);
}
`;

/** For the shell of every backend. */
export function escapeScript(planted: Planted): string {
  const column = process.arch === "arm64" ? 1 : 0;
  const numbers = Object.entries(systemCalls).map(([name, number]) => [name, number[column]] as const);
  const attempts = escapes.map(({ attempt }, index) => `attempt(${index}, sub { ${attempt} });`);
  const program = [hash("number", numbers), hash("host", Object.entries(planted)), PRELUDE, ...attempts];
  return `LC_ALL=C perl - <<'END OF ATTEMPTS'\n${program.join("\n")}\nEND OF ATTEMPTS\n`;
}

function hash(name: string, entries: readonly (readonly [string, string | number])[]): string {
  const quoted = entries.map(([key, value]) => `${key} => ${typeof value === "number" ? value : `'${value}'`}`);
  return `our %${name} = (${quoted.join(", ")});`;
}

export type Outcome = "escaped" | "held" | (string & {});

/** By name. One that printed nothing has not come to an end. */
export function outcomesOf(stdout: string): Record<Escape["name"], Outcome> {
  const lines = stdout.split("\n");
  return Object.fromEntries(
    escapes.map(({ name }, index) => {
      const line = lines.find((one) => one.startsWith(`${index} `));
      return [name, line?.slice(`${index} `.length) ?? "did not end"];
    }),
  );
}
