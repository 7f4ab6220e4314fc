// Exchanges an enrollment token for a node's identity, in one transaction: token, node, certificate
// and audit, all or nothing. Of two machines with the same pairing token exactly one becomes a
// node; of two with the same bootstrap token the newest is the node. The same machine may repeat the
// request and gets the same response.

import { ApiError } from "@holdfast/contracts/errors";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import { recordAudit } from "../../audit/record.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import type { Authority } from "../../identity/authority.ts";
import type { IssuanceGate } from "../../identity/issuance-gate.ts";
import { type KeyRequest, readKeyRequest } from "../../identity/requests.ts";
import { networkOf, takeAttempt } from "../../mechanisms/rate-limit.ts";
import { hashSecret, isSecretOf } from "../../mechanisms/secrets.ts";
import { nodeNameFrom, numbered } from "../directory/name.ts";
import type { NodeDirectory } from "../directory/standings.ts";
import { moveNode } from "../directory/state.ts";
import { type CertificateRow, type Clocks, certify } from "../identity/certificates.ts";
import {
  bindNamesakes,
  checkBootstrap,
  type Enrolled,
  type HeldNode,
  holdNodeOf,
  type KnownToken,
  sameAgain,
  takeToken,
  type UsedToken,
} from "./token-use.ts";
import { checkHostValues, registerUnknownHost } from "./vm-hosts.ts";

export type EnrollmentRequest = {
  token: string;
  csr: string;
  node_id?: string | undefined;
  node_name?: string | undefined;
  facts: HostFacts;
};

type Dependencies = {
  system: Sql;
  authority: Authority;
  gate: Pick<IssuanceGate, "check">;
  directory: NodeDirectory;
  /** For development: a VM host that no record exists of registers with any bootstrap token. */
  allowUnknownHosts: boolean;
  log: Log;
};
type Joined = Enrolled & { changed?: () => void };
/** What a token was exchanged for, and the key that its certificate is for. */
type EnrolledKey = Enrolled & { keySha256: Buffer };
type Exchange = { token: UsedToken; key: KeyRequest; clocks: Clocks; request: EnrollmentRequest };
type Origin = { address: string; correlationId: string };

/** A host that loses its state at every start, or two hosts that compete for one node, must not fill the tables. */
const bootstrapUses = { attempts: 30, windowSeconds: 60 * 60 };

/**
 * Only failures are limited, so that a fleet behind one address joins as fast as it can: unknown tokens by address, a
 * known token that is refused by token. A legitimate machine waits a minute at most.
 */
const failedJoins = { attempts: 60, windowSeconds: 60 };

const UNKNOWN_HOST = "a host without a record was registered, because ALLOW_UNKNOWN_HOST_REGISTRATION is on";

/** Only the hash of this part of a token is stored; the rest identifies the root that the agent trusts. */
function secretOf(token: string): string {
  return token.split(".", 1)[0] ?? "";
}

export async function enroll(deps: Dependencies, request: EnrollmentRequest, from: Origin): Promise<EnrolledKey> {
  const secret = secretOf(request.token);
  const secretHash = hashSecret(secret);
  const known = await selectKnown(deps.system, secretHash);
  const ours = new Date();
  try {
    // Before anything more expensive than this one query.
    if (!known) throw new ApiError("enrollment_token_unknown");
    deps.gate.check();
    if (isSecretOf("bootstrap", secret)) {
      await takeAttempt(deps.system, bootstrapUses, "bootstrap", secretHash.toString("hex"));
    }
    const key = readKeyRequest(request.csr);
    checkHostValues(request);
    const use = { secretHash, keySha256: key.keySha256, nodeId: request.node_id };
    const { changed, ...enrolled } = await deps.system.begin(async (tx): Promise<Joined> => {
      const held = await holdNodeOf(tx, known, use);
      const unknown = await registerUnknownHost(tx, known, request, { allowed: deps.allowUnknownHosts, use });
      if (unknown && "again" in unknown) return unknown.again;
      if (unknown) deps.log.warn({ host_id: request.node_name }, UNKNOWN_HOST);
      const token = unknown?.token ?? (await takeToken(tx, use));
      if (!token) return sameAgain(tx, use);
      const exchange = { token, key, request, clocks: { ours, database: known.now } };
      const joined = token.makes_node ? await join(deps, tx, exchange) : await rejoin(deps, tx, exchange, held);
      await recordEnrolled(deps, tx, joined, { ...exchange, held, correlationId: from.correlationId });
      return joined;
    });
    changed?.();
    return { ...enrolled, keySha256: key.keySha256 };
  } catch (error) {
    if (error instanceof ApiError) await countRefused(deps, known, request, { ...from, error });
    throw error;
  }
}

async function join(deps: Dependencies, tx: Tx, exchange: Exchange): Promise<Joined> {
  const { token, request } = exchange;
  checkBootstrap(token, request.node_name, undefined);
  const requested = token.node_name ?? request.node_name ?? request.facts.hostname;
  const node = { id: token.enrolled_node_id, orgId: token.org_id };
  const name = await insertNode(tx, token, nodeNameFrom(requested));
  if (token.kind === "bootstrap") await bindNamesakes(tx, token);
  return { nodeId: node.id, orgId: node.orgId, name, certificate: await certifyFor(deps, tx, exchange) };
}

async function certifyFor(
  { authority }: Dependencies,
  tx: Tx,
  { token, key, clocks }: Exchange,
): Promise<CertificateRow> {
  const node = { id: token.enrolled_node_id, orgId: token.org_id };
  const certificate = await certify(tx, authority, { node, request: key, clocks, issuedFor: "enrollment" });
  if (!certificate) throw new Error("a certificate that replaces none was refused");
  return certificate;
}

/** A name in use gets a number; but a bootstrap token only creates the node of exactly its name. */
async function insertNode(tx: Tx, token: UsedToken, wanted: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const name = numbered(wanted, attempt);
    const inserted = await tx`
      INSERT INTO nodes (id, org_id, name) VALUES (${token.enrolled_node_id}, ${token.org_id}, ${name})
      ON CONFLICT (org_id, name) WHERE status <> 'retired' DO NOTHING RETURNING id`;
    if (inserted.length === 1) return name;
    if (token.kind === "bootstrap") {
      throw new ApiError("name_taken", {
        message: `A node named ${name} exists by now, and this bootstrap token was not created for it.`,
        nextStep: `Make one for it, \`holdfast node token create --bootstrap --node ${name}\`; or rename or retire it.`,
      });
    }
  }
}

/** A new key for a node that exists. Its earlier certificates are revoked: their holder is replaced. */
async function rejoin(
  deps: Dependencies,
  tx: Tx,
  exchange: Exchange,
  held: HeldNode | undefined,
): Promise<Joined> {
  const { token, request } = exchange;
  const node = { id: token.enrolled_node_id, orgId: token.org_id };
  // The certificate's insert takes a weaker lock on the node: upgrading it could deadlock.
  if (held?.id !== node.id) throw new Error("a token for a node that was not locked");
  checkBootstrap(token, request.node_name, held);
  const certificate = await certifyFor(deps, tx, exchange);
  const moved = await moveNode(tx, node.id, "enrolled", { keepSerial: certificate.serial });
  if (!moved) throw new Error("a token for a node that does not exist");
  if ("refused" in moved) throw new ApiError("node_retired");
  const changed = () => deps.directory.changed(moved);
  return { nodeId: node.id, orgId: node.orgId, name: moved.row.name, certificate, changed };
}

async function recordEnrolled(
  { log }: Dependencies,
  tx: Tx,
  { nodeId, orgId, name, certificate }: Joined,
  { token, request, held, correlationId }: Exchange & { held: HeldNode | undefined; correlationId: string },
): Promise<void> {
  const { hostname, agent_version } = request.facts;
  await recordAudit(tx, log, {
    orgId,
    by: { actor_type: "node", actor_id: nodeId, actor_name: name, role: "none" },
    action: "node.enroll",
    target: { type: "node", id: nodeId, name },
    result: "allowed",
    correlationId,
    details: {
      token_id: token.id,
      token_kind: token.kind,
      serial: certificate.serial,
      again: !token.makes_node,
      // Of the replaced identity: if it is recent, two machines use the token.
      last_heard_at: held?.heartbeat_at?.toISOString() ?? null,
      hostname,
      agent_version,
    },
  });
}

/** With the database's time. */
async function selectKnown(system: Sql, secretHash: Buffer): Promise<(KnownToken & { now: Date }) | undefined> {
  const [token] = await system<(KnownToken & { now: Date })[]>`
    SELECT id, org_id, kind, node_id, clock_timestamp() AS now FROM enrollment_tokens
    WHERE secret_hash = ${secretHash}`;
  return token;
}

/**
 * Throws `rate_limit_exceeded` instead, without an audit event, when there were too many. Otherwise the refusal is in the
 * audit trail of the token's organization, if the token is known.
 */
async function countRefused(
  { system, log }: Dependencies,
  token: KnownToken | undefined,
  request: EnrollmentRequest,
  { error, address, correlationId }: Origin & { error: ApiError },
): Promise<void> {
  await takeAttempt(system, failedJoins, "failed-join", token?.id ?? networkOf(address));
  await recordAudit(system, log, {
    orgId: token?.org_id ?? null,
    by: { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" },
    action: "node.enroll",
    target: { type: "enrollment_token", id: token?.id ?? null, name: request.facts.hostname },
    result: "failed",
    reason: error.code,
    correlationId,
    details: token ? { token_kind: token.kind, node_id: token.node_id } : {},
  });
}
