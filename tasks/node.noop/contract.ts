// Does nothing, through the whole path: evidence that a node takes, runs and answers tasks.

import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "node.noop",
  summary: "Do nothing, and prove that the task path works",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 70,
  expiresAfterSeconds: 300,
  concurrency: 32,
  capabilities: [],
  byHand: true,
  resultBytes: 1024,
  params: z.strictObject({
    echo: z.string().max(200).optional().describe("Comes back in the result."),
    hold_ms: z.int().min(0).max(60_000).default(0).describe("How long to take over it, telling progress."),
  }),
  progress: z.strictObject({ percent: z.number().min(0).max(100) }),
  result: z.strictObject({ echo: z.string().nullable() }),
  failures: {},
});
