// Decides by the first line of the program in a container whether a script may be sent to it. An engine that leaves something
// out, by its configuration or silently, is found here and not by the script.

import type { SandboxLimits } from "../driver.ts";
import type { EngineFacts } from "./engine.ts";
import { fieldsOf, READY } from "./program.ts";

export type Expected = { shell: string; image: string; work: string; limits: SandboxLimits };

const NONE = "0000000000000000";
/** A quota of the processor is per this time, unless the engine chose another. */
const PERIOD_US = 100_000;

/** Returns what is wrong, in words. */
export function verifyReady(line: string, expected: Expected, { limits }: EngineFacts): string | undefined {
  if (!line.startsWith(READY)) return `the image ${expected.image} printed something before the script`;
  const fields = fieldsOf(line);
  const is = (name: string, value: string) => fields.get(name) === value;
  if (!is("shell", expected.shell)) return `the image ${expected.image} has no ${expected.shell}`;
  if (!is("work", expected.work)) {
    return "/work in the container is not the directory of this run: engine and agent have to run on the same host, and see the same mounts";
  }
  if (is("Uid", "0")) return "the container runs as root";
  if (!is("CapPrm", NONE) || !is("CapBnd", NONE)) return "the container has capabilities";
  if (!is("NoNewPrivs", "1")) return "the container can gain privileges";
  if (!is("Seccomp", "2")) {
    return "the engine has no filter of system calls: remove seccomp=unconfined from its configuration";
  }
  const { memoryBytes, pids, cpus } = expected.limits;
  const set: [boolean, string, boolean][] = [
    [limits.memory.enforced, "memory", atMost(fields.get("memory"), memoryBytes)],
    [limits.pids.enforced, "pids", atMost(fields.get("pids"), pids)],
    [limits.cpu.enforced, "cpu", atMost(fields.get("cpu"), Math.ceil(cpus * PERIOD_US))],
  ];
  const ineffective = set.filter(([enforced, , isSet]) => enforced && !isSet).map(([, name]) => name);
  return ineffective.length === 0 ? undefined : `the engine did not set the limits: ${ineffective.join(", ")}`;
}

/** Without a limit, the kernel has "max", a negative number, or one that is larger than any memory. */
function atMost(text: string | undefined, most: number): boolean {
  const number = Number(text);
  return text !== undefined && number > 0 && number <= most;
}
