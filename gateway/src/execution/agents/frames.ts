// Reads what agents send. A frame of an unknown type is of a newer version and ignored. What a result says is cleaned and
// completed rather than refused: refused, it would be lost, or sent again and again.

import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import {
  AgentFrame,
  type HelloFrame,
  HelloFrame as HelloSchema,
  type ResultFrame,
} from "@holdfast/contracts/execution/frames";
import { isDeeperThan } from "@holdfast/kit/json-depth";

/** Everything but `hello` and `ping`, which have ways of their own. */
export type ReportFrame = Exclude<AgentFrame, { type: "hello" | "ping" }>;

export type Read =
  | { type: "ping"; ts: number }
  | { type: "hello"; hello: HelloFrame }
  | { type: "report"; frame: ReportFrame }
  /** Of a type that is not known. */
  | { type: "unknown" }
  /** Not JSON, or not an object with a type: whatever speaks there is no agent. */
  | { type: "foreign" }
  | { type: "invalid"; of: string; problem: string };

const MOST_LEVELS = 100;
const MOST_ERROR_CHARACTERS = 4_000;
const knownTypes: ReadonlySet<string> = new Set(AgentFrame.options.map(({ shape }) => shape.type.value));

export function readFrame(data: Buffer): Read {
  const frame = parse(data);
  if (typeof frame !== "object" || frame === null || !("type" in frame) || typeof frame.type !== "string")
    return { type: "foreign" };
  if (frame.type === "ping" && "ts" in frame && Number.isFinite(frame.ts))
    return { type: "ping", ts: frame.ts as number };
  if (!knownTypes.has(frame.type)) return { type: "unknown" };
  if (frame.type === "hello") {
    const read = HelloSchema.safeParse(frame);
    return read.success ? { type: "hello", hello: read.data } : invalid(frame.type, read.error);
  }
  const read = AgentFrame.safeParse(withoutNulls(frame));
  if (!read.success) return invalid(frame.type, read.error);
  return { type: "report", frame: read.data as ReportFrame };
}

/** As the api takes it: a failure has an error, a success has none, and nothing is too deep to be stored. */
export function resultOf({ status, output, error }: ResultFrame): ExecutionResult {
  if (isDeeperThan(output, MOST_LEVELS)) {
    return {
      status: "failed",
      error: `NODE_EXECUTION_FAILED: the output is nested more than ${MOST_LEVELS} levels`,
    };
  }
  const kept = output === undefined ? {} : { output };
  if (status === "succeeded") return { status, ...kept };
  return {
    status,
    ...kept,
    error: error?.slice(0, MOST_ERROR_CHARACTERS).toWellFormed() || "NODE_EXECUTION_FAILED",
  };
}

export function hasExitCode({ output }: ExecutionResult): boolean {
  return (
    typeof output === "object" && output !== null && "exitCode" in output && Number.isInteger(output.exitCode)
  );
}

/** Some agents write absent values as null. */
function withoutNulls(frame: object): object {
  return Object.fromEntries(Object.entries(frame).filter(([name, value]) => value !== null || name === "output"));
}

function parse(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString());
  } catch {
    return undefined;
  }
}

function invalid(of: string, error: { issues: { path: PropertyKey[]; message: string }[] }): Read {
  const [issue] = error.issues;
  return { type: "invalid", of, problem: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not valid"}` };
}
