// An agent that is started with this keeps in a file what is otherwise only in its memory: its instance id and the number
// of the last heartbeat that was answered. A copy of the file is what a virtual machine has that is copied while it runs:
// kernels of tests cannot do that to a process.

import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";

const file = process.env["LAB_MEMORY"] ?? "";
const memory = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : { instanceId: randomUUID(), answered: 0 };
globalThis.labMemory = {
  ...memory,
  remember: (answered) => writeFileSync(file, JSON.stringify({ instanceId: memory.instanceId, answered })),
};
globalThis.labMemory.remember(memory.answered);

const changes = {
  "/node-agent/src/main.ts": [
    ["const instanceId = randomUUID();", "const { instanceId } = globalThis.labMemory;"],
  ],
  "/node-agent/src/link/heartbeat-order.ts": [
    ["let answered = 0;", "let { answered } = globalThis.labMemory;"],
    ["return answer;", "globalThis.labMemory.remember(answered); return answer;"],
  ],
};

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const [, wanted = []] = Object.entries(changes).find(([path]) => url.endsWith(path)) ?? [];
    const source = wanted.reduce((text, [before, after]) => {
      if (!text.includes(before)) throw new Error(`${url} does not have: ${before}`);
      return text.replace(before, after);
    }, String(loaded.source));
    return wanted.length === 0 ? loaded : { ...loaded, source };
  },
});
