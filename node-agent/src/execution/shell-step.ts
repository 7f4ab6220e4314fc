// The step `agent.execute`: a shell script in the sandbox that the owner of the host has chosen, or nothing.

import type { SandboxBackend } from "@holdfast/contracts/execution/limits";
import type { AgentExecutePayload, ShellOutput } from "@holdfast/contracts/execution/payloads";
import type { SandboxDriver } from "../drivers/sandbox/driver.ts";
import { createCapture, MOST_STREAM_BYTES } from "./capture.ts";
import { BACKEND_SETTING } from "./settings.ts";
import {
  failed,
  fixedStep,
  type Step,
  type StepContext,
  type StepResult,
  type StopReason,
  stopOutcome,
} from "./step.ts";

/** `configured`: by the owner of the host; `driver`: what this version has for it. */
export type Sandbox = { configured: SandboxBackend | undefined; driver: SandboxDriver | undefined };

type Config = NonNullable<AgentExecutePayload["node"]["config"]>;
type ShellTask = NonNullable<Config["task"]>;

/** The envelope of the output besides the two streams. */
const OUTPUT_BYTES = 2 * MOST_STREAM_BYTES + 1024;

export function agentStep({ node }: AgentExecutePayload, sandbox: Sandbox, secret: string | undefined): Step {
  const { task, sandbox: wanted = {} } = node.config ?? {};
  if (task === undefined) {
    const message = "The step has no task: nothing was run.";
    return fixedStep({ status: "succeeded", output: { accepted: true, executed: false, message } });
  }
  const refused = refusalOf(task, wanted, sandbox);
  if (refused !== undefined || !sandbox.driver) {
    return fixedStep(failed("NODE_EXECUTION_FAILED", refused ?? "no backend"));
  }
  const { driver } = sandbox;
  return {
    pure: false,
    outputBytes: OUTPUT_BYTES,
    timeoutMs: wanted.timeoutMs,
    run: (context) => runShell(driver, { task, secret }, context),
  };
}

/** Fails closed: whatever this host does not provide is never left out silently. */
export function refusalOf(
  task: ShellTask,
  wanted: NonNullable<Config["sandbox"]>,
  { configured, driver }: Sandbox,
): string | undefined {
  if (configured === undefined) {
    return (
      "this agent runs no shell tasks. The owner of its host has to choose a backend, such as " +
      `${BACKEND_SETTING}=host, which runs scripts as the user of the agent without isolation, and restart the agent`
    );
  }
  if (!driver) {
    return (
      `this version of the agent does not support the backend ${configured}. The owner of its host has to set ` +
      `${BACKEND_SETTING}=host, which runs scripts without isolation, or install a version that supports ${configured}`
    );
  }
  if (wanted.backend !== undefined && wanted.backend !== driver.name) {
    return `the step requires the backend ${JSON.stringify(wanted.backend)}, and this agent has ${driver.name}`;
  }
  if (driver.name === "host" && wanted.network === "none") {
    return "the step requires a sandbox without network, which the backend host cannot provide";
  }
  if ((wanted.envPassthroughAllowlist?.length ?? 0) > 0) {
    return "the step requires variables of the agent's environment, which this version does not pass on";
  }
  const name = Object.keys(task.env ?? {}).find((one) => !/^[^=\0]+$/.test(one));
  return name === undefined ? undefined : `${JSON.stringify(name)} is not the name of an environment variable`;
}

async function runShell(
  driver: SandboxDriver,
  { task, secret }: { task: ShellTask; secret: string | undefined },
  { signal, onOutput, progress }: StepContext,
): Promise<StepResult> {
  const captured = { stdout: createCapture(), stderr: createCapture() };
  const run = driver.run({
    ...{ shell: task.shell ?? "sh", script: task.script, env: task.env ?? {}, secret },
    onOutput: (stream, text) => onOutput(stream, captured[stream].add(text)),
  });
  progress(`The script runs on the backend ${driver.name}.`);
  if (signal.aborted) run.kill();
  else signal.addEventListener("abort", () => run.kill(), { once: true });
  try {
    const { exitCode } = await run.ended;
    const stopped = signal.aborted ? (signal.reason as StopReason) : undefined;
    const output = {
      backend: driver.name,
      exitCode,
      timedOut: stopped === "timeout",
      stdout: captured.stdout.text(),
      stderr: captured.stderr.text(),
      stdoutTruncated: captured.stdout.truncated(),
      stderrTruncated: captured.stderr.truncated(),
    } satisfies ShellOutput;
    return resultOf(output, stopped);
  } catch (error) {
    return failed("NODE_EXECUTION_FAILED", (error as Error).message);
  }
}

/** A script that ended by itself just before it was stopped has its own result. */
export function resultOf(output: ShellOutput, stopped: StopReason | undefined): StepResult {
  if (output.exitCode === 0) return { status: "succeeded", output: { ...output, timedOut: false } };
  if (output.exitCode !== null)
    return { status: "failed", error: "NODE_EXECUTION_FAILED", output: { ...output, timedOut: false } };
  return { status: "failed", error: stopOutcome[stopped ?? "cancelled"], output };
}
