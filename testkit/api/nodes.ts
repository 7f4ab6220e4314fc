// Machines that become nodes by the product's own enrollment, and speak to the node-facing listener
// as an agent does: node:https with a client certificate, one connection kept open.

import { webcrypto } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, type AgentOptions, request as send } from "node:https";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import type { AnswerOf, BodyInputOf } from "@holdfast/contracts/endpoint";
import { createEnrollmentToken, enrollNode, getTrustBundle } from "@holdfast/contracts/endpoints/enrollment";
import type { sendHeartbeat } from "@holdfast/contracts/node/endpoints";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { x509 } from "../identity/x509.ts";
import { atEnd } from "../lifetime/at-end.ts";
import type { TestApi } from "./api.ts";

export type KeyAndRequest = { key: string; csr: string };

/** A new P-256 key and its certificate request, both PEM. */
export async function makeKeyRequest(algorithm?: webcrypto.EcKeyGenParams): Promise<KeyAndRequest> {
  const generated = algorithm ?? { name: "ECDSA", namedCurve: "P-256" };
  const keys = await webcrypto.subtle.generateKey(generated, true, ["sign", "verify"]);
  return requestFor(keys);
}

export async function requestFor(keys: webcrypto.CryptoKeyPair): Promise<KeyAndRequest> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: "CN=a machine",
    keys,
    signingAlgorithm: { name: keys.publicKey.algorithm.name, hash: "SHA-256" },
  });
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { key: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"), csr: request.toString("pem") };
}

export const hostFacts: HostFacts = {
  agent_version: "0.1.0",
  hostname: "machine-one",
  os: { family: "linux", flavour: "debian", version: "13", kernel: "6.12.0" },
  arch: "x64",
  cpus: 4,
  memory_bytes: 8_000_000_000,
  memory_free_bytes: 4_000_000_000,
  disk: { total_bytes: 100_000_000_000, free_bytes: 50_000_000_000 },
  accelerators: [],
  capabilities: ["os_users"],
  account: "root",
  advertised_address: null,
};

export function heartbeatOf(changes: Partial<BodyInputOf<typeof sendHeartbeat>> = {}) {
  const now = new Date().toISOString();
  return {
    sent_at: now,
    started_at: now,
    facts: hostFacts,
    certificate: { serial: "00", not_before: now, not_after: now, renewal_due_at: now },
    profile: { name: "default", version: 1 },
    verifier_kids: [],
    running: 0,
    unsent_results: 0,
    findings: [],
    counters: {
      identity_rejections: 0,
      tasks_started: 0,
      tasks_succeeded: 0,
      tasks_failed: 0,
      tasks_refused: 0,
      polls_failed: 0,
      results_failed: 0,
      renewals_failed: 0,
    },
    holding: [],
    ...changes,
  } satisfies BodyInputOf<typeof sendHeartbeat>;
}

export type Answer = { status: number; body: Record<string, unknown>; headers: IncomingMessage["headers"] };
type Ask = { method?: string; path: string; body?: unknown; headers?: Record<string, string> };

/** A client of one connection, with its certificate if it has one. */
export type TestClient = {
  ask(request: Ask): Promise<Answer>;
  /** The connection of the last request. */
  socket(): TLSSocket | undefined;
  close(): void;
};

export function openClient(baseUrl: string, tls: AgentOptions, instanceId: string = uuidv7()): TestClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ...tls });
  let socket: TLSSocket | undefined;
  atEnd(() => agent.destroy());
  return {
    socket: () => socket,
    close: () => agent.destroy(),
    async ask({ method = "GET", path, body, headers = {} }) {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const outgoing = send(`${baseUrl}${path}`, {
        method,
        agent,
        headers: {
          [INSTANCE_HEADER]: instanceId,
          [BOOT_HEADER]: "boot-1",
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      });
      outgoing.once("socket", (used) => {
        socket = used as TLSSocket;
      });
      outgoing.end(payload);
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      // Whoever is answered before all was sent may find the connection closed while sending.
      outgoing.on("error", () => undefined);
      const answered = await text(response);
      // A proxy in between may answer with a text of its own.
      const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
      return {
        status: response.statusCode ?? 0,
        body: isJson && answered !== "" ? (JSON.parse(answered) as Record<string, unknown>) : {},
        headers: response.headers,
      };
    },
  };
}

export type TestNode = {
  id: string;
  orgId: string;
  name: string;
  key: string;
  /** What the server answered. */
  enrolled: AnswerOf<typeof enrollNode>;
  tls: { cert: string; key: string; ca: string[] };
  client: TestClient;
  path(rest: string): string;
};

/** By the public listener, as `holdfast agent join` does by the node-facing one. */
export async function enrollTestNode(
  api: TestApi,
  orgId: string,
  options: { token?: string; nodeId?: string; keys?: KeyAndRequest; hostname?: string } = {},
): Promise<TestNode> {
  const token = options.token ?? (await tokenOf(api, orgId, options.nodeId));
  const { key, csr } = options.keys ?? (await makeKeyRequest());
  const facts = { ...hostFacts, hostname: options.hostname ?? hostFacts.hostname };
  const enrolled = await api.operator()(enrollNode, { body: { token, csr, facts } });
  const { roots } = await api.operator()(getTrustBundle, {});
  const tls = { cert: enrolled.certificate, key, ca: roots };
  return {
    id: enrolled.node_id,
    orgId: enrolled.org_id,
    name: enrolled.node_name,
    key,
    enrolled,
    tls,
    client: openClient(api.nodeUrl, tls),
    path: (rest) => `/internal/v1/nodes/${enrolled.node_id}/${rest}`,
  };
}

export async function tokenOf(api: TestApi, orgId: string, nodeId?: string): Promise<string> {
  const body = nodeId === undefined ? {} : { node_id: nodeId };
  return (await api.operator(orgId)(createEnrollmentToken, { body })).token;
}

export function sendHeartbeatFrom(
  node: TestNode,
  changes: Partial<BodyInputOf<typeof sendHeartbeat>> = {},
): Promise<Answer> {
  return node.client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf(changes) });
}

/** To compare answers: ECDSA signs the same content differently every time. */
export function unsigned({ trust, ...answer }: AnswerOf<typeof enrollNode>) {
  const { signatures: _, ...content } = trust;
  return { ...answer, trust: content };
}
