// The requests of an agent to the node-facing API, and how responses are validated. The caller provides the transport:
// a real agent has a connection pool, a simulator of thousands has its own.

import { holdingText } from "@holdfast/contracts/node/limits";
import type {
  DiagnosticRecord,
  Heartbeat,
  HeartbeatAnswer,
  Held,
  IssuedCertificate,
  ProgressReport,
  TaskResultReport,
  Verdict,
  WaitAnswer,
} from "@holdfast/contracts/node/protocol";
import type { Answer } from "./exchange.ts";
import { LinkFailure } from "./failures.ts";

export type LinkCalls = {
  heartbeat(body: Heartbeat & { holding: Held[] }): Promise<Answer<HeartbeatAnswer>>;
  wait(query: {
    seconds: number;
    room: number;
    holding: Held[];
    signal: AbortSignal;
  }): Promise<Answer<WaitAnswer>>;
  progress(taskId: string, report: ProgressReport): Promise<{ cancel: boolean }>;
  results(results: TaskResultReport[]): Promise<{ verdicts: { task_id: string; verdict: Verdict }[] }>;
  renew(csr: string): Promise<IssuedCertificate & { trust_bundle: string[] }>;
  diagnostics(records: DiagnosticRecord[]): Promise<{ seq: number }>;
};

export type Request = {
  method: "GET" | "POST";
  /** Below the node's own path. */
  path: string;
  body?: unknown;
  timeoutMs: number;
  signal?: AbortSignal;
};

const TIMEOUT_MS = 15_000;
/** In addition to the seconds that a poll is held for. */
const WAIT_SLACK_MS = 10_000;

export function linkCalls(send: <T>(request: Request) => Promise<Answer<T>>): LinkCalls {
  const ask = async <T>(request: Request, expect: (body: T) => boolean): Promise<Answer<T>> => {
    const answer = await send<T>(request);
    if (!expect(answer.body)) throw unexpected(request.path);
    return answer;
  };
  const post = <T>(path: string, body: unknown, expect: (body: T) => boolean) =>
    ask<T>({ method: "POST", path, body, timeoutMs: TIMEOUT_MS }, expect);

  return {
    heartbeat: (body) => post<HeartbeatAnswer>("/heartbeat", body, isHeartbeatAnswer),
    wait: ({ seconds, room, holding, signal }) =>
      ask<WaitAnswer>(
        {
          method: "GET",
          path: `/tasks/wait?wait=${seconds}&room=${room}&holding=${holdingText(holding)}`,
          timeoutMs: seconds * 1000 + WAIT_SLACK_MS,
          signal,
        },
        isWaitAnswer,
      ),
    progress: async (taskId, report) =>
      (
        await post<{ cancel: boolean }>(
          `/tasks/${taskId}/progress`,
          report,
          ({ cancel }) => typeof cancel === "boolean",
        )
      ).body,
    results: async (results) =>
      (
        await post<{ verdicts: { task_id: string; verdict: Verdict }[] }>(
          "/results",
          { results },
          ({ verdicts }) => Array.isArray(verdicts),
        )
      ).body,
    renew: async (csr) =>
      (
        await post<IssuedCertificate & { trust_bundle: string[] }>(
          "/renew",
          { csr },
          ({ certificate, trust_bundle }) => typeof certificate === "string" && Array.isArray(trust_bundle),
        )
      ).body,
    diagnostics: async (records) =>
      (await post<{ seq: number }>("/diagnostics", { records }, ({ seq }) => typeof seq === "number")).body,
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
