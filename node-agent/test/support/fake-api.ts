// The node-facing API's faulty twin: real mutual TLS and the real forms of answers over a few lists
// in memory, and whatever fault a test asks for: lost answers, repeated offers, 429, pages, 503, resets.

import { generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type {
  DiagnosticRecord,
  EnvironmentProfile,
  Heartbeat,
  Held,
  NodeStanding,
  ProgressReport,
  TaskOffer,
  TaskResultReport,
  VerifierKeys,
} from "@holdfast/contracts/node/protocol";
import { HeartbeatRequest, ResultsReport, WaitQuery } from "@holdfast/contracts/node/protocol";
import { STREAM_PATH } from "@holdfast/contracts/node/stream";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import { signStatement } from "@holdfast/kit/signed-statement";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Validity } from "../../../control-plane/src/identity/certificate-der.ts";
import { type FakeAuthority, keyDigest, makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { createFakeRecovery, type FakeRecovery, type RecoverBody } from "./fake-recovery.ts";

export type Fault =
  | { do: "answer"; status: number; headers?: Record<string, string>; body: string }
  /** The request is lost. */
  | { do: "reset" }
  /** The request is done, its answer is lost. */
  | { do: "lose_answer" };

export type FakeApi = {
  url: string;
  nodeId: string;
  authority: FakeAuthority;
  profile: EnvironmentProfile;
  /** What the agent is told; changing it takes effect with its next request. */
  standing: NodeStanding;
  serverTime: () => number;
  /** Of the certificates that renewals get; undefined: as `validityMs` says, from now. */
  renewedValidity: Partial<Validity> | undefined;
  /** What renewals get beside the certificate. */
  trustBundle: string[];
  verifiers: VerifierKeys;
  /** Asked before each request; `path` is without the node's prefix. */
  fault: (path: string, request: IncomingMessage) => Fault | undefined;
  streamFault?: Fault | undefined;
  token(prefix?: "hfe_" | "hfb_"): string;
  sign(task: Partial<TaskOffer> & { task_type: string }, key?: SigningPair): TaskOffer;
  /** Offered until the node holds it or has answered it. */
  enqueue(offer: TaskOffer): TaskOffer;
  cancel(taskId: string): void;
  results: TaskResultReport[];
  heartbeats: (Heartbeat & { holding: Held[] })[];
  progress: (ProgressReport & { task_id: string })[];
  diagnostics: DiagnosticRecord[];
  /** By the agent's clock, when it sent them last. */
  diagnosticsSentAt: string | undefined;
  /** With which certificate it starts; undefined: one of its own. */
  shows: { cert: string; key: string } | undefined;
  /** Makes a new node of every token. */
  ignoresNodeId: boolean;
  enrollments: { body: Record<string, unknown>; nodeId: string }[];
  recovery: FakeRecovery;
  /** Certificates shown, by serial, in the order of requests. */
  serials: string[];
  resumed: boolean[];
  requests: string[];
  held(): number;
  connections(): number;
  /** As a network does that forgets them. */
  dropConnections(): void;
  /** The time of every certificate that was shown so far is over, by the server's clock. */
  expireShown(): void;
  resultOf(taskId: string): TaskResultReport | undefined;
  stop(): Promise<void>;
  start(): Promise<void>;
};

type SigningPair = ReturnType<typeof newSigningKey>;

export function newSigningKey(kid = randomBytes(6).toString("hex")) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  const jwk = { kty: "OKP" as const, crv: "Ed25519" as const, alg: "EdDSA" as const, use: "sig" as const, kid, x };
  return { kid, privateKey, jwk };
}

export async function startFakeApi(
  options: { validityMs?: number; serverValidity?: { notBefore?: Date; notAfter?: Date } } = {},
): Promise<FakeApi> {
  const authority = await makeAuthority();
  const signing = newSigningKey();
  const offers = new Map<string, TaskOffer>();
  const waiting = new Set<() => void>();
  const cancelled = new Set<string>();
  const secrets = new Map<string, { key: string; nodeId: string } | undefined>();
  let server: https.Server | undefined;
  let port = 0;

  const api: FakeApi = {
    url: "",
    nodeId: uuidv7(),
    authority,
    profile: { name: "test", version: 1, endpoints: {}, resolve: {}, ca_sha256: [authority.rootSha256] },
    standing: { status: "active", reason: null },
    serverTime: Date.now,
    renewedValidity: undefined,
    trustBundle: [authority.rootPem],
    verifiers: { keys: [signing.jwk] },
    fault: () => undefined,
    shows: undefined,
    token(prefix = "hfe_") {
      const secret = prefix + randomBytes(32).toString("base64url");
      secrets.set(secret, undefined);
      return `${secret}.${authority.rootDigest}`;
    },
    sign(task, key = signing) {
      const offer = {
        task_id: uuidv7(),
        generation: 1,
        params: {},
        expires_at: new Date(Date.now() + 300_000).toISOString(),
        correlation_id: uuidv7(),
        ...task,
      };
      const { task_id, task_type, params, expires_at } = offer;
      const signed = { task_id, node_id: task.node_id ?? api.nodeId, task_type, params, expires_at };
      return { ...offer, signature: task.signature ?? signDetached(key, canonicalJson(signed)) };
    },
    enqueue(offer) {
      offers.set(offer.task_id, offer);
      for (const wake of [...waiting]) wake();
      return offer;
    },
    cancel(taskId) {
      cancelled.add(taskId);
      for (const wake of [...waiting]) wake();
    },
    results: [],
    heartbeats: [],
    progress: [],
    diagnostics: [],
    diagnosticsSentAt: undefined,
    ignoresNodeId: false,
    enrollments: [],
    recovery: createFakeRecovery(authority, () => ({ profile: api.profile, verifiers: api.verifiers })),
    serials: [],
    resumed: [],
    requests: [],
    held: () => waiting.size,
    connections: () => sockets.size,
    dropConnections() {
      for (const socket of sockets) socket.destroy();
    },
    expireShown() {
      for (const serial of api.serials) expired.add(serial);
      api.dropConnections();
    },
    resultOf: (taskId) => api.results.find((one) => one.task_id === taskId),
    async stop() {
      const closing = server;
      server = undefined;
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => (closing ? closing.close(resolve) : resolve(undefined)));
    },
    async start() {
      const { cert, key } = api.shows ?? (await authority.server(undefined, options.serverValidity));
      server = https.createServer(
        { cert, key, requestCert: true, rejectUnauthorized: false, ticketKeys, sessionIdContext: "fake" },
        (request, response) => {
          void respond(request, response).catch((error: Error) =>
            json(response, 500, { code: "test", message: error.message }),
          );
        },
      );
      server.on("connection", (socket) => {
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
      });
      await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
      port = (server.address() as AddressInfo).port;
      api.url = `https://127.0.0.1:${port}`;
      api.profile.endpoints = { node_api: api.url };
    },
  };
  const sockets = new Set<import("node:stream").Duplex>();
  const expired = new Set<string>();
  // They outlive a restart, as the real ones do.
  const ticketKeys = randomBytes(48);

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", api.url);
    const prefix = `/internal/v1/nodes/${api.nodeId}`;
    const path = url.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : url.pathname;
    // As a server that does not know streams yet.
    if (path === STREAM_PATH && !api.streamFault) return refuse(response, 404, "route_not_found");
    api.requests.push(path);
    const socket = request.socket as TLSSocket;
    const body = await bodyOf(request);
    const fault = path === STREAM_PATH ? api.streamFault : api.fault(path, request);
    if (fault?.do === "reset") return void socket.destroy();
    if (fault?.do === "answer") return void response.writeHead(fault.status, fault.headers).end(fault.body);
    const answer = (value: unknown) => {
      if (fault?.do === "lose_answer") socket.destroy();
      else json(response, 200, value);
    };
    if (path === "/v1/trust-bundle") return answer({ roots: [authority.rootPem] });
    if (path === "/v1/enroll") return enroll(body as Record<string, string>, answer, response);
    if (path === "/v1/server-time") return answer(api.recovery.signedTime(url.searchParams.get("nonce") ?? ""));
    if (path === "/v1/recover") {
      const recovered = await api.recovery.recover(body as RecoverBody);
      return "code" in recovered ? refuse(response, recovered.status, recovered.code) : answer(recovered);
    }
    const presented = socket.getPeerX509Certificate();
    const leaf = presented && new X509Certificate(presented.raw);
    if (!leaf || !authority.hasIssued(leaf)) return refuse(response, 401, "certificate_missing");
    const serial = leaf.serialNumber.toLowerCase();
    api.serials.push(serial);
    api.resumed.push(socket.isSessionReused());
    if (api.recovery.hasReplaced(leaf)) return refuse(response, 401, "identity_revoked");
    if (expired.has(serial) || leaf.validToDate.getTime() < Date.now())
      return refuse(response, 401, "cert_expired");
    if (path === url.pathname) return refuse(response, 404, "route_not_found");
    await serve(path, url, body, answer, request);
  };

  const serve = async (
    path: string,
    url: URL,
    body: unknown,
    answer: (value: unknown) => void,
    request: IncomingMessage,
  ) => {
    if (path === "/heartbeat") {
      const heartbeat = HeartbeatRequest.parse(body);
      api.heartbeats.push(heartbeat);
      const known = new Set(heartbeat.verifier_kids);
      const stale = api.verifiers.keys.some(({ kid }) => !known.has(kid));
      const keySet = {
        kind: "task_key_set",
        version: (heartbeat.trust?.key_set ?? 0) + 1,
        content: api.verifiers,
      };
      const profile = {
        kind: "environment_profile",
        version: api.profile.version,
        content: api.profile,
      };
      return answer({
        server_time: new Date(api.serverTime()).toISOString(),
        node: api.standing,
        cancel: heartbeat.holding.map((one) => one.task_id).filter((id) => cancelled.has(id)),
        recovery: api.recovery.refresh(heartbeat.recovery?.seq),
        trust: {
          ...(stale ? { key_sets: [signStatement([signing], keySet)] } : {}),
          ...(heartbeat.profile.version < api.profile.version ? { profile: authority.sign(profile) } : {}),
        },
      });
    }
    if (path === "/tasks/wait") {
      const { wait, room, holding } = WaitQuery.parse(Object.fromEntries(url.searchParams));
      const heldAs = new Map(holding.map((one) => [one.task_id, one.generation]));
      const look = () => ({
        node: api.standing,
        tasks: [...offers.values()]
          .filter((one) => (heldAs.get(one.task_id) ?? 0) < one.generation)
          .slice(0, room),
        cancel: [...heldAs.keys()].filter((id) => cancelled.has(id)),
      });
      const ends = Date.now() + wait * 1000;
      while (Date.now() < ends && server && !request.socket.destroyed) {
        const seen = look();
        if (seen.tasks.length + seen.cancel.length > 0) break;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(wake, ends - Date.now());
          function wake() {
            clearTimeout(timer);
            waiting.delete(wake);
            request.socket.off("close", wake);
            resolve();
          }
          waiting.add(wake);
          request.socket.once("close", wake);
        });
      }
      return answer(look());
    }
    if (path === "/results") {
      const { results } = ResultsReport.parse(body);
      return answer({
        verdicts: results.map((one) => ({ task_id: one.task_id, verdict: accept(one as TaskResultReport) })),
      });
    }
    if (path === "/renew") {
      const notAfter = new Date(Date.now() + (options.validityMs ?? 86_400_000));
      const validity = api.renewedValidity ?? { notAfter };
      const certificate = await authority.certify((body as { csr: string }).csr, api.nodeId, validity);
      return answer({
        certificate,
        not_before: new Date().toISOString(),
        not_after: notAfter.toISOString(),
        trust_bundle: api.trustBundle,
      });
    }
    if (path === "/diagnostics") {
      const { records, sent_at } = body as { records: DiagnosticRecord[]; sent_at?: string };
      api.diagnostics.push(...records);
      api.diagnosticsSentAt = sent_at;
      return answer({ seq: Math.max(...api.diagnostics.map((one) => one.seq)) });
    }
    const [, taskId = ""] = /^\/tasks\/([^/]+)\/progress$/.exec(path) ?? [];
    api.progress.push({ task_id: taskId, ...(body as ProgressReport) });
    answer({ cancel: cancelled.has(taskId) });
  };

  const accept = (report: TaskResultReport) => {
    offers.delete(report.task_id);
    cancelled.delete(report.task_id);
    if (api.resultOf(report.task_id)) return "duplicate";
    api.results.push(report);
    return "accepted";
  };

  const enroll = async (
    body: Record<string, string>,
    answer: (value: unknown) => void,
    response: ServerResponse,
  ) => {
    const secret = body["token"]?.split(".")[0] ?? "";
    if (!secrets.has(secret)) return refuse(response, 401, "enrollment_token_unknown");
    const key = keyDigest(body["csr"] ?? "");
    const used = secrets.get(secret);
    const again = used && used.key !== key;
    if (again && !secret.startsWith("hfb_")) return refuse(response, 410, "enrollment_token_used");
    const known = api.ignoresNodeId ? undefined : body["node_id"];
    const nodeId = used?.nodeId ?? known ?? (api.enrollments.length === 0 ? api.nodeId : uuidv7());
    secrets.set(secret, { key, nodeId });
    api.enrollments.push({ body, nodeId });
    const notAfter = new Date(Date.now() + (options.validityMs ?? 86_400_000));
    answer({
      node_id: nodeId,
      org_id: uuidv7(),
      node_name: body["node_name"] ?? "test-node",
      certificate: await authority.certify(body["csr"] ?? "", nodeId, { notAfter }),
      not_before: new Date().toISOString(),
      not_after: notAfter.toISOString(),
      trust: authority.sign({
        kind: "enrollment",
        version: 1,
        content: {
          node_id: nodeId,
          key_sha256: key,
          key_set: { version: 1, ...api.verifiers },
          bundle: { version: 1, roots: [authority.rootPem] },
          profile: api.profile,
        },
      }),
    });
  };

  await api.start();
  atEnd(() => api.stop());
  return api;
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return text === "" ? undefined : JSON.parse(text);
}

function json(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  response.writeHead(status, headers).end(text);
}

function refuse(response: ServerResponse, status: number, code: string): void {
  json(response, status, {
    code,
    message: `refused with ${code}`,
    next_step: "do something",
    correlation_id: uuidv7(),
    retryable: false,
    details: {},
  });
}
