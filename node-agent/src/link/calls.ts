// The calls of an agent to the node-facing API, and how answers are validated. The caller provides the transport: over a
// stream, or as requests of their own.

import type { AgentCapabilities } from "@holdfast/contracts/execution/frames";
import { holdingText } from "@holdfast/contracts/node/limits";
import type {
  DiagnosticRecord,
  Heartbeat,
  HeartbeatAnswer,
  Held,
  IssuedCertificate,
  NodeStanding,
  ProgressReport,
  TaskOffer,
  TaskResultReport,
  Verdict,
  WaitAnswer,
} from "@holdfast/contracts/node/protocol";
import type { Answer } from "./exchange.ts";
import { LinkFailure } from "./failures.ts";
import { usualTimes } from "./times.ts";

export type LinkCalls = {
  heartbeat(body: Heartbeat & { holding: Held[] }): Promise<Answer<HeartbeatAnswer>>;
  wait(query: Wait): Promise<Answer<WaitResponse>>;
  progress(taskId: string, report: ProgressReport): Promise<{ cancel: boolean }>;
  results(results: TaskResultReport[]): Promise<{ verdicts: { task_id: string; verdict: Verdict }[] }>;
  renew(csr: string): Promise<IssuedCertificate & { trust_bundle: string[] }>;
  diagnostics(records: DiagnosticRecord[]): Promise<{ seq: number }>;
  /** For running steps with the node's own identity; what is returned is validated by the caller. */
  pairNode(body: { agentVersion: string; capabilities: AgentCapabilities }): Promise<unknown>;
  /** Of a VM that is being launched here; null: there is none. */
  vmUserData(vmId: string): Promise<string | null>;
};

export type Wait = { seconds: number; room: number; holding: Held[]; signal: AbortSignal };

export type WaitResponse = {
  tasks: TaskOffer[];
  cancel: string[];
  /** Undefined: as before. */
  node?: NodeStanding | undefined;
  /** The server wants a heartbeat: it asked for one, or the connection is a new one. */
  beat?: boolean;
  /** There is nothing new, but it should be waited for anew, with what is held and taken now. */
  again?: boolean;
};

export type Request = {
  /** The endpoint's name, and the parameters of its path but the node's id. */
  call: string;
  params?: Record<string, string>;
  method: "GET" | "POST";
  /** Below the node's own path. */
  path: string;
  body?: unknown;
  timeoutMs: number;
  signal?: AbortSignal;
};

/** In addition to the seconds that a poll is held for. */
const WAIT_SLACK_MS = 10_000;

export type SendRequest = <T>(request: Request) => Promise<Answer<T>>;

/** As a request of its own, held by the server. */
export function pollBy(send: SendRequest): LinkCalls["wait"] {
  return async ({ seconds, room, holding, signal }) => {
    const path = `/tasks/wait?wait=${seconds}&room=${room}&holding=${holdingText(holding)}`;
    const timeoutMs = seconds * 1000 + WAIT_SLACK_MS;
    const answer = await send<WaitAnswer>({ call: "waitForTasks", method: "GET", path, timeoutMs, signal });
    if (!isWaitAnswer(answer.body)) throw unexpected(path);
    const { beat, ...body } = answer.body;
    return { ...answer, body: { ...body, beat: beat === true } };
  };
}

export function linkCalls(
  { send, wait }: { send: SendRequest; wait: LinkCalls["wait"] },
  { callMs: timeoutMs } = usualTimes,
): LinkCalls {
  const ask = async <T>(request: Request, expect: (body: T) => boolean): Promise<Answer<T>> => {
    const answer = await send<T>(request);
    if (!expect(answer.body)) throw unexpected(request.path);
    return answer;
  };
  const post = <T>(call: string, path: string, body: unknown, expect: (body: T) => boolean) =>
    ask<T>({ call, method: "POST", path, body, timeoutMs }, expect);

  return {
    heartbeat: (body) => post<HeartbeatAnswer>("sendHeartbeat", "/heartbeat", body, isHeartbeatAnswer),
    wait,
    progress: async (taskId, report) => {
      const path = `/tasks/${taskId}/progress`;
      const request = { call: "reportProgress", params: { task_id: taskId }, method: "POST", path } as const;
      return (
        await ask<{ cancel: boolean }>(
          { ...request, body: report, timeoutMs },
          ({ cancel }) => typeof cancel === "boolean",
        )
      ).body;
    },
    results: async (results) =>
      (
        await post<{ verdicts: { task_id: string; verdict: Verdict }[] }>(
          "reportResults",
          "/results",
          { results },
          ({ verdicts }) => Array.isArray(verdicts),
        )
      ).body,
    renew: async (csr) =>
      (
        await post<IssuedCertificate & { trust_bundle: string[] }>(
          "renewCertificate",
          "/renew",
          { csr },
          ({ certificate, trust_bundle }) => typeof certificate === "string" && Array.isArray(trust_bundle),
        )
      ).body,
    diagnostics: async (records) =>
      (
        await post<{ seq: number }>(
          "sendDiagnostics",
          "/diagnostics",
          { records, sent_at: new Date().toISOString() },
          ({ seq }) => typeof seq === "number",
        )
      ).body,
    pairNode: async (body) =>
      (await post<object | null>("pairNode", "/execution-agent", body, (answer) => answer !== null)).body,
    vmUserData: async (vmId) => {
      const path = `/vms/${vmId}/user-data`;
      const request = { call: "takeVmUserData", params: { vm_id: vmId }, method: "POST", path } as const;
      const isText = (body: { user_data: string | null }) =>
        body.user_data === null || typeof body.user_data === "string";
      return (await ask<{ user_data: string | null }>({ ...request, timeoutMs }, isText)).body.user_data;
    },
  };
}

function isHeartbeatAnswer({ server_time, node, cancel }: HeartbeatAnswer): boolean {
  return !Number.isNaN(Date.parse(server_time)) && typeof node?.status === "string" && Array.isArray(cancel);
}

function isWaitAnswer({ node, tasks, cancel }: WaitAnswer): boolean {
  return typeof node?.status === "string" && Array.isArray(tasks) && Array.isArray(cancel);
}

/** JSON and 200, but not a response of this API: another server is at the address. */
function unexpected(path: string): LinkFailure {
  const excerpt = `the answer to ${path.split("?")[0]} does not have the form of this API`;
  return new LinkFailure({ kind: "answer", status: 200, code: undefined, excerpt });
}
