// supervisor-process <arguments of the agent>: runs an agent as a service manager with `Restart=always` does, and prints the state of
// the service. Whoever started it can forbid restarts over its channel, and allow them again.

import { type ChildProcess, spawn } from "node:child_process";
import { holdfast } from "../lab/command.ts";

let running: ChildProcess | undefined;
let mayRestart = true;
const report = (line: object) =>
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), msg: "service", ...line })}\n`);

process.on("message", (order: { mayRestart: boolean }) => {
  ({ mayRestart } = order);
  report({ may_restart: mayRestart });
  if (mayRestart && !running) launch();
});
process.once("SIGTERM", () => {
  mayRestart = false;
  if (!running) process.exit(0);
  running.once("exit", () => process.exit(0));
  running.kill("SIGTERM");
});
process.once("disconnect", () => process.exit(0));
launch();

function launch(): void {
  // It ends with this process, however that ends.
  const command = ["--pdeathsig", "KILL", "--", process.execPath, holdfast, ...process.argv.slice(2)];
  const child = spawn("setpriv", command, { stdio: ["ignore", "inherit", "inherit"] });
  running = child;
  report({ state: "active", pid: child.pid });
  child.once("exit", (code, signal) => {
    running = undefined;
    const ended = `ended with ${signal ?? code}`;
    if (mayRestart) launch();
    else report({ state: "failed", result: `${ended}, restart blocked` });
  });
}
