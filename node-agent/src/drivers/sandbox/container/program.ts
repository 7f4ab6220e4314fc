// What runs in a container around a script, and what it reports. Environment, secret and script travel on its input, so they
// are neither arguments nor part of the container that the engine describes to everybody who may ask it. It needs a shell
// and `cat` of the image. Nothing is sent before its first line, by which the driver sees what it really runs in.

import { SECRET_FILE, SECRET_FILE_VARIABLE } from "../driver.ts";

/** Ends the input. An agent that was killed has sent only a part of a script, which must not run. */
const END = "#holdfast:end";
export const READY = "holdfast:ready";
/** A file in /work until the script begins. It proves that /work is what the agent has prepared. */
export const MARKER = ".holdfast-run";

/**
 * Of the shell that runs the script. Its variable is gone when the script begins. Of all processes, those of the script are
 * ended first if memory runs out, so that somebody is left to report it.
 */
const RUN_SCRIPT = `
input=$(cat)
{ echo 500 > /proc/self/oom_score_adj; } 2>/dev/null
case $input in
*"
${END}") eval "unset input
exec </dev/null
$input" ;;
*) exit 125 ;;
esac`;

/**
 * `$1`: shell of the script; `$2`: the program above. It starts no process besides, because at the end there may be no
 * room for one. Counters are read in the container: its cgroup is gone as soon as it has ended. What this shell itself would
 * print about the end of the script is not output of the script.
 */
const SUPERVISE = `
cgroup=/sys/fs/cgroup
first() { read -r value rest < "$2" && printf ' %s=%s' "$1" "$value"; }
field() { while read -r key value rest; do case $key in "$2") printf ' %s=%s' "$1" "$value" ;; esac; done < "$3"; }
exec 3>&2 2>/dev/null
printf '${READY}'
while IFS=: read -r key value; do
  case $key in Uid|NoNewPrivs|Seccomp|CapPrm|CapBnd) printf ' %s=%s' "$key" "\${value##*	}" ;; esac
done < /proc/self/status
first memory $cgroup/memory/memory.limit_in_bytes || first memory $cgroup/memory.max
first pids $cgroup/pids/pids.max || first pids $cgroup/pids.max
first cpu $cgroup/cpu/cpu.cfs_quota_us || first cpu $cgroup/cpu.max
first work /work/${MARKER}
command -v "$1" >/dev/null && printf ' shell=%s' "$1"
printf '\\n'
read -r mark || exit 125
"$1" -c "$2" 2>&3 3>&-
code=$?
printf '\\000%s code=%s' "$mark" "$code"
field memory oom_kill $cgroup/memory/memory.oom_control || field memory oom_kill $cgroup/memory.events
field pids max $cgroup/pids/pids.events || field pids max $cgroup/pids.events
field periods nr_periods $cgroup/cpu/cpu.stat || field periods nr_periods $cgroup/cpu.stat
field throttled nr_throttled $cgroup/cpu/cpu.stat || field throttled nr_throttled $cgroup/cpu.stat
printf '\\n'
exit $code`;

export function programOf(shell: string): string[] {
  return ["sh", "-c", SUPERVISE, "sh", shell, RUN_SCRIPT];
}

export type Input = {
  /** Random, so that a script cannot end its own output by accident. */
  mark: string;
  script: string;
  env: Readonly<Record<string, string>>;
  secret?: string | undefined;
};

/** What is sent once the container is ready. */
export function inputOf({ mark, script, env, secret }: Input): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [mark, ...exports, ...(secret === undefined ? [] : writeSecret(secret)), script, END].join("\n");
}

/** By the shell itself: it is in no arguments. The mode of files that the script makes stays what it was. */
function writeSecret(secret: string): string[] {
  return [
    `(umask 077; printf %s ${quote(secret)} > ${SECRET_FILE}) || exit 125`,
    `export ${SECRET_FILE_VARIABLE}=${SECRET_FILE}`,
  ];
}

/** A name that no shell can set. Engines could, but then everybody who may ask the engine would see the value. */
export function unusableName(env: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
}

function quote(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/** Names with values of a line such as `holdfast:ready Uid=65534 pids=256`. */
export function fieldsOf(line: string): Map<string, string> {
  const pairs = line.split(" ").filter((word) => word.includes("="));
  return new Map(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

export type OutputReader = {
  /** Returns what is output of the script. */
  add(text: string): string;
  /** At the end: the rest of the output. */
  end(): string;
  /** The first line, once it is there. */
  ready(): string | undefined;
  /** What was counted until the script had ended; undefined if that was not reached. */
  counted(): Map<string, string> | undefined;
};

/** Takes the two lines of the program out of the standard output, whatever the pieces in which it comes. */
export function readOutput(mark: string): OutputReader {
  const trailer = `\0${mark}`;
  let held = "";
  let ready: string | undefined;
  let tail: string | undefined;
  return {
    add(text) {
      if (tail !== undefined) {
        tail += text;
        return "";
      }
      held += text;
      if (ready === undefined) {
        const newline = held.indexOf("\n");
        if (newline < 0) return "";
        ready = held.slice(0, newline);
        held = held.slice(newline + 1);
      }
      const at = held.indexOf(trailer);
      const until = at >= 0 ? at : held.length - heldBack(held, trailer);
      const output = held.slice(0, until);
      if (at >= 0) tail = held.slice(at + trailer.length);
      held = held.slice(until);
      return output;
    },
    end() {
      return tail === undefined && ready !== undefined ? held : "";
    },
    ready: () => ready,
    counted: () => (tail === undefined ? undefined : fieldsOf(tail.split("\n", 1)[0] ?? "")),
  };
}

/** How many characters at the end may be the beginning of the trailer. */
function heldBack(text: string, trailer: string): number {
  const from = text.lastIndexOf("\0");
  return from >= 0 && trailer.startsWith(text.slice(from)) ? text.length - from : 0;
}
