// What a step is given to do, and what it returns. Payloads of other systems' dispatchers pass through unchanged as far as the
// agent knows their fields; see `forOlderAgent` in the gateway.

import { z } from "zod";
import { AnyText, ReportedText } from "../fields.ts";
import { sandboxLimits } from "./limits.ts";

const Environment = z.record(AnyText.max(256), AnyText.max(65_536));

const ShellTask = z.object({
  type: z.literal("shell"),
  script: AnyText.min(1).max(200_000),
  shell: z.enum(["sh", "bash"]).optional(),
  env: Environment.optional(),
});
export type ShellTask = z.infer<typeof ShellTask>;

const StepSandbox = z.object({
  backend: AnyText.max(64).optional(),
  network: z.enum(["none", "enabled"]).optional(),
  timeoutMs: z.int().min(1000).max(600_000).optional(),
  docker: z.object({ image: AnyText.min(1).max(500) }).optional(),
  envPassthroughAllowlist: z.array(AnyText.min(1).max(256)).max(100).optional(),
});
export type StepSandbox = z.infer<typeof StepSandbox>;

export const AgentExecutePayload = z.object({
  nodeId: AnyText.min(1).max(200),
  node: z.object({
    id: AnyText.min(1).max(200),
    type: z.literal("agent.execute"),
    config: z.object({ task: ShellTask.optional(), sandbox: StepSandbox.optional() }).optional(),
  }),
  runId: AnyText.max(200).optional(),
  workflowId: AnyText.max(200).optional(),
  attemptCount: z.int().optional(),
});
export type AgentExecutePayload = z.infer<typeof AgentExecutePayload>;

export const ConnectorActionPayload = z.object({
  connectorId: AnyText.min(1).max(120),
  actionId: AnyText.min(1).max(120),
  input: z.unknown().optional(),
  env: z.unknown().optional(),
});
export type ConnectorActionPayload = z.infer<typeof ConnectorActionPayload>;

/** Of a shell task. A result of one without an exit code did not run: it is a failure, whatever its status says. */
export const ShellOutput = z.object({
  backend: z.string(),
  exitCode: z.int().nullable(),
  timedOut: z.boolean(),
  stdout: ReportedText,
  stderr: ReportedText,
  stdoutTruncated: z.boolean(),
  stderrTruncated: z.boolean(),
  /** That the script has hit; of several, the one that explains a failure best. */
  limit: z.enum(sandboxLimits).optional(),
  /** Variables that the step asked for and did not get, each with the reason. */
  missingVariables: z.array(z.string()).optional(),
});
export type ShellOutput = z.infer<typeof ShellOutput>;
