// A process that runs a task and dies by SIGKILL at one of its phases, as in a crash: nothing is
// tidied up. Started by tests with a JSON text as its only argument.

import type { Host } from "../../tasks/executor.ts";
import { runTask } from "../tasks/run-task.ts";

const { type, params, host, phase } = JSON.parse(process.argv[2] ?? "") as {
  type: string;
  params: unknown;
  host: Partial<Host>;
  phase: string;
};
await runTask(type, params, {
  host,
  onPhase: (entered) => {
    if (entered === phase) process.kill(process.pid, "SIGKILL");
  },
});
