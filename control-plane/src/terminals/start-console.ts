// Has a host connect the serial console of a VM, where other terminals have a node start a shell.

import type { TaskEngine } from "../tasks/engine.ts";
import type { NewTask } from "../tasks/enqueue.ts";
import type { Opening } from "./queries.ts";

export function startConsole(
  tasks: TaskEngine,
  { id: session_id, vm_id, correlation_id }: Opening,
  {
    common,
    times,
  }: {
    common: Omit<NewTask, "type" | "params">;
    times: { within_seconds: number; detached_seconds: number };
  },
): ReturnType<TaskEngine["start"]> {
  return tasks.start({ ...common, type: "vm.console", params: { session_id, vm_id, correlation_id, ...times } });
}
