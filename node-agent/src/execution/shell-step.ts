// The step `agent.execute`: a shell script in the sandbox that the owner of the host has chosen, or nothing.

import { type EnforcedLimit, sandboxLimits } from "@holdfast/contracts/execution/limits";
import type {
  AgentExecutePayload,
  ShellOutput,
  ShellTask,
  StepSandbox,
} from "@holdfast/contracts/execution/payloads";
import type { Environment } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { OutputStream, SandboxDriver, SandboxOrder } from "../drivers/sandbox/driver.ts";
import type { Backends } from "./backends.ts";
import { type Capture, createCapture, MOST_STREAM_BYTES } from "./capture.ts";
import { hasNetwork, passedOn, refusalOf, type SandboxPolicy } from "./policy.ts";
import {
  failed,
  fixedStep,
  type Step,
  type StepContext,
  type StepResult,
  type StopReason,
  stopOutcome,
} from "./step.ts";

/** `environment`: of the agent. */
export type Sandbox = { backends: Backends; policy: SandboxPolicy; environment: Environment };

type Shell = { task: ShellTask; wanted: StepSandbox; secret: string | undefined };

/** The envelope of the output besides the two streams, with variables that are missing. */
const OUTPUT_BYTES = 2 * MOST_STREAM_BYTES + 24 * 1024;

export function agentStep({ node }: AgentExecutePayload, sandbox: Sandbox, secret: string | undefined): Step {
  const { task, sandbox: wanted = {} } = node.config ?? {};
  if (task === undefined) {
    const message = "The step has no task: nothing was run.";
    return fixedStep({ status: "succeeded", output: { accepted: true, executed: false, message } });
  }
  const name = Object.keys(task.env ?? {}).find((one) => !/^[^=\0]+$/.test(one));
  if (name !== undefined) {
    return fixedStep(
      failed("NODE_EXECUTION_FAILED", `${JSON.stringify(name)} is not the name of an environment variable`),
    );
  }
  const { timeoutMs } = sandbox.policy;
  return {
    pure: false,
    outputBytes: OUTPUT_BYTES,
    timeoutMs: Math.min(wanted.timeoutMs ?? timeoutMs, timeoutMs),
    run: (context) => chooseAndRun(sandbox, { task, wanted, secret }, context),
  };
}

async function chooseAndRun(sandbox: Sandbox, shell: Shell, context: StepContext): Promise<StepResult> {
  const { backends, policy } = sandbox;
  const choice = await backends.choose();
  if ("refused" in choice) return failed("NODE_EXECUTION_FAILED", choice.refused);
  const { driver, check } = choice;
  const refused = refusalOf(shell.wanted, { check, provides: driver.provides, policy });
  if (refused !== undefined) return failed("NODE_EXECUTION_FAILED", refused);
  if (context.signal.aborted) return failed(stopOutcome[context.signal.reason as StopReason]);
  try {
    return await runShell(driver, { sandbox, shell }, context);
  } catch (error) {
    backends.doubt();
    return failed("NODE_EXECUTION_FAILED", (error as Error).message);
  }
}

async function runShell(
  driver: SandboxDriver,
  { sandbox: { policy, environment }, shell }: { sandbox: Sandbox; shell: Shell },
  { signal, onOutput, progress, redaction }: StepContext,
): Promise<StepResult> {
  const { task, wanted, secret } = shell;
  const passed = passedOn(wanted.envPassthroughAllowlist, policy.passthrough, environment);
  const characters = policy.outputCharacters;
  const most = { characters, bytes: MOST_STREAM_BYTES };
  const captured = {
    stdout: createCapture(redaction.stream(), most),
    stderr: createCapture(redaction.stream(), most),
  };
  const order: SandboxOrder = {
    ...{ id: uuidv7(), shell: task.shell ?? "sh", script: task.script, secret, limits: policy.limits },
    env: { ...passed.env, ...task.env },
    network: hasNetwork(wanted, policy),
    image: wanted.docker?.image ?? policy.image,
    onOutput: (stream, text) => show(stream, (capture) => capture.add(text)),
  };
  /** What the limit cuts off is marked, once, in the live output as in the result. */
  const show = (stream: OutputStream, take: (capture: Capture) => string) => {
    const capture = captured[stream];
    const before = capture.truncated();
    onOutput(stream, take(capture));
    if (!before && capture.truncated()) onOutput(stream, markerOf(characters));
  };
  const run = driver.run(order);
  progress(`The script runs on the backend ${driver.name}.`);
  if (passed.missing.length > 0) progress(`Variables that are not passed on: ${passed.missing.join(", ")}.`);
  if (signal.aborted) run.kill();
  else signal.addEventListener("abort", () => run.kill(), { once: true });
  const { exitCode, hit } = await run.ended;
  for (const stream of ["stdout", "stderr"] as const) show(stream, (capture) => capture.end());
  const stopped = signal.aborted ? (signal.reason as StopReason) : undefined;
  const [stdout, stderr] = [captured.stdout, captured.stderr].map((capture) => ({
    text: capture.text() + (capture.truncated() ? markerOf(characters) : ""),
    truncated: capture.truncated(),
  })) as [Shown, Shown];
  const timedOut = stopped === "timeout" && exitCode === null;
  const limit = limitOf(hit, { timedOut, truncated: stdout.truncated || stderr.truncated });
  const output = {
    ...{ backend: driver.name, exitCode, timedOut, stdout: stdout.text, stderr: stderr.text },
    ...{ stdoutTruncated: stdout.truncated, stderrTruncated: stderr.truncated },
    ...(limit === undefined ? {} : { limit }),
    ...(passed.missing.length > 0 ? { missingVariables: [...passed.missing] } : {}),
  } satisfies ShellOutput;
  return resultOf(output, stopped);
}

type Shown = { text: string; truncated: boolean };

function markerOf(characters: number): string {
  return `\n[output limit of ${characters} characters reached: the rest was discarded]\n`;
}

/** Of all that were hit, the one that explains best what happened. */
export function limitOf(
  hit: readonly EnforcedLimit[],
  { timedOut, truncated }: { timedOut: boolean; truncated: boolean },
): ShellOutput["limit"] {
  const all: readonly string[] = [...hit, ...(timedOut ? ["time"] : []), ...(truncated ? ["output"] : [])];
  return sandboxLimits.find((one) => all.includes(one));
}

/** A script that ended by itself just before it was stopped has its own result. */
export function resultOf(output: ShellOutput, stopped: StopReason | undefined): StepResult {
  if (output.exitCode === 0) return { status: "succeeded", output: { ...output, timedOut: false } };
  if (output.exitCode !== null)
    return { status: "failed", error: "NODE_EXECUTION_FAILED", output: { ...output, timedOut: false } };
  return { status: "failed", error: stopOutcome[stopped ?? "cancelled"], output };
}
