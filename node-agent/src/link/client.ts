// The agent's requests to the node-facing API over mutual TLS. An idle agent owns one connection; a
// second exists only while results or progress travel beside a held poll. A renewed identity is used
// by the next connections, and what is under way on the old one is never cut.

import https from "node:https";
import type { LookupFunction } from "node:net";
import { createSecureContext } from "node:tls";
import { BOOT_HEADER, holdingText, INSTANCE_HEADER } from "@holdfast/contracts/node-limits";
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
} from "@holdfast/contracts/node-protocol";
import { checkApiIdentity } from "./api-identity.ts";
import { type Answer, exchange } from "./exchange.ts";
import { LinkFailure } from "./failures.ts";

/** What TLS needs of the node's identity. */
export type Credentials = { keyPem: string; chainPem: string; roots: readonly string[] };

export type LinkClient = {
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
  /** From the next connection on. */
  use(credentials: Credentials): void;
  close(): void;
};

export type LinkClientOptions = {
  apiUrl: string;
  nodeId: string;
  instanceId: string;
  bootId: string;
  credentials: Credentials;
  /** Finds the addresses of the API's host name. */
  lookup: LookupFunction;
};

const TIMEOUT_MS = 15_000;
/** On top of the seconds a poll is held for. */
const WAIT_SLACK_MS = 10_000;
/** How long a connection without a request stays open: the second one is closed soon after it was needed. */
const UNUSED_CONNECTION_MS = 5_000;

type Pool = { agent: https.Agent; inFlight: number; retired: boolean };

export function createLinkClient(options: LinkClientOptions): LinkClient {
  const { apiUrl, nodeId, instanceId, bootId, lookup } = options;
  const base = `${apiUrl}/internal/v1/nodes/${nodeId}`;
  const headers = { [INSTANCE_HEADER]: instanceId, [BOOT_HEADER]: bootId };
  let pool = openPool(options.credentials, lookup);

  const ask = async <T>(
    method: "GET" | "POST",
    path: string,
    more: { body?: unknown; timeoutMs?: number; signal?: AbortSignal; expect: (body: T) => boolean },
  ): Promise<Answer<T>> => {
    const used = pool;
    used.inFlight += 1;
    try {
      const answer = await exchange<T>({
        method,
        url: new URL(base + path),
        body: more.body,
        headers,
        timeoutMs: more.timeoutMs ?? TIMEOUT_MS,
        via: { agent: used.agent },
        signal: more.signal,
      });
      if (!more.expect(answer.body)) throw unexpected(path);
      return answer;
    } finally {
      used.inFlight -= 1;
      closeWhenUnused(used);
    }
  };

  return {
    heartbeat: (body) => ask<HeartbeatAnswer>("POST", "/heartbeat", { body, expect: isHeartbeatAnswer }),
    wait: ({ seconds, room, holding, signal }) =>
      ask<WaitAnswer>("GET", `/tasks/wait?wait=${seconds}&room=${room}&holding=${holdingText(holding)}`, {
        timeoutMs: seconds * 1000 + WAIT_SLACK_MS,
        signal,
        expect: isWaitAnswer,
      }),
    progress: async (taskId, body) =>
      (
        await ask<{ cancel: boolean }>("POST", `/tasks/${taskId}/progress`, {
          body,
          expect: ({ cancel }) => typeof cancel === "boolean",
        })
      ).body,
    results: async (results) =>
      (
        await ask<{ verdicts: { task_id: string; verdict: Verdict }[] }>("POST", "/results", {
          body: { results },
          expect: ({ verdicts }) => Array.isArray(verdicts),
        })
      ).body,
    renew: async (csr) =>
      (
        await ask<IssuedCertificate & { trust_bundle: string[] }>("POST", "/renew", {
          body: { csr },
          expect: ({ certificate, trust_bundle }) =>
            typeof certificate === "string" && Array.isArray(trust_bundle),
        })
      ).body,
    diagnostics: async (records) =>
      (
        await ask<{ seq: number }>("POST", "/diagnostics", {
          body: { records },
          expect: ({ seq }) => typeof seq === "number",
        })
      ).body,
    use(credentials) {
      pool.retired = true;
      closeWhenUnused(pool);
      pool = openPool(credentials, lookup);
    },
    close() {
      pool.agent.destroy();
    },
  };
}

function openPool({ keyPem, chainPem, roots }: Credentials, lookup: LookupFunction): Pool {
  const agent = new https.Agent({
    keepAlive: true,
    lookup,
    // Both may be free for a moment, between an answered poll and the next: with room for one, the other
    // would be closed, and every task would pay for a handshake.
    maxFreeSockets: 2,
    // The least recently used one is left to close.
    scheduling: "lifo",
    timeout: UNUSED_CONNECTION_MS,
    maxCachedSessions: 1,
    checkServerIdentity: checkApiIdentity,
    secureContext: createSecureContext({
      key: keyPem,
      cert: chainPem,
      ca: [...roots],
      minVersion: "TLSv1.2",
    }),
  });
  return { agent, inFlight: 0, retired: false };
}

function closeWhenUnused(pool: Pool): void {
  if (pool.retired && pool.inFlight === 0) pool.agent.destroy();
}

function isHeartbeatAnswer({ server_time, node, cancel }: HeartbeatAnswer): boolean {
  return !Number.isNaN(Date.parse(server_time)) && typeof node?.status === "string" && Array.isArray(cancel);
}

function isWaitAnswer({ node, tasks, cancel }: WaitAnswer): boolean {
  return typeof node?.status === "string" && Array.isArray(tasks) && Array.isArray(cancel);
}

/** JSON and 200, but not what this API says: something else answers at the address. */
function unexpected(path: string): LinkFailure {
  const excerpt = `the answer to ${path.split("?")[0]} does not have the form of this API`;
  return new LinkFailure({ kind: "answer", status: 200, code: undefined, excerpt });
}
