// Started as a process of its own: runs one script in bubblewrap, and dies by SIGKILL at one point of it, as an agent in a crash.
// Prints each point that it reaches. Argument: a JSON text.

import { uuidv7 } from "@holdfast/kit/uuid";
import { bubblewrapDriver } from "../../src/drivers/sandbox/bubblewrap/bubblewrap.ts";

const { owner, script, dieAt } = JSON.parse(process.argv[2] ?? "") as {
  owner: string;
  script: string;
  dieAt: string | undefined;
};

const reached = (point: string) => {
  process.stdout.write(`${point}\n`);
  if (point === dieAt) process.kill(process.pid, "SIGKILL");
};

const MEBIBYTE = 1024 * 1024;
await bubblewrapDriver({ owner, reached }).run({
  ...{ id: uuidv7(), shell: "sh", script, env: {}, network: false, image: "", secret: "hidden" },
  limits: { memoryBytes: 64 * MEBIBYTE, cpus: 1, pids: 32, diskBytes: MEBIBYTE },
  onOutput: (_, text) => reached(text.trim()),
}).ended;
