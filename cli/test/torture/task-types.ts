// Task types that leave a trace of every execution. Each run appends one line to a file, so that a
// second execution of the same task can be seen whatever else was lost.

const contract = (type: string, idempotent: boolean) => `
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "${type}",
  summary: "Append a line to a file",
  kind: "desired_state",
  idempotent: ${idempotent},
  timeoutSeconds: 20,
  expiresAfterSeconds: 600,
  concurrency: 8,
  capabilities: [],
  byHand: true,
  resultBytes: 1024,
  params: z.strictObject({ file: z.string(), mark: z.string(), hold_ms: z.int() }),
  progress: z.strictObject({}),
  result: z.strictObject({ mark: z.string() }),
  failures: {},
});
`;

const execute = `
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, progress, signal }) {
    appendFileSync(params.file, params.mark + "\\n");
    progress("holding", {});
    await sleep(params.hold_ms, undefined, { signal });
    return { mark: params.mark };
  },
});
`;

export const onceOnly = "test.once";
export const repeatable = "test.repeat";

export const tracedTypes: Record<string, string> = {
  [`tasks/${onceOnly}/contract.ts`]: contract(onceOnly, false),
  [`tasks/${onceOnly}/execute.ts`]: execute,
  [`tasks/${repeatable}/contract.ts`]: contract(repeatable, true),
  [`tasks/${repeatable}/execute.ts`]: execute,
};
