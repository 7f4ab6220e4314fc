// Every refusal of a node's identity says what to do now. Here the advice is followed, word for word, against the real
// api: afterwards the machine is an active node.

import { CallError } from "@holdfast/contracts/client";
import {
  createEnrollmentToken,
  enrollNode,
  getTrustBundle,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode, type NodeChange } from "@holdfast/contracts/endpoints/nodes";
import type { ErrorEnvelope } from "@holdfast/contracts/errors";
import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { uuidForm, uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { authorityOf, certificateFor } from "../../testkit/api/certificates.ts";
import { heartbeatOf, hostFacts, makeKeyRequest, openClient } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Authority, temporaryAuthority } from "../src/identity/authority.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;
let authority: Authority;
let roots: string[];

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "ours");
  ({ superuser } = openRoles(api.database));
  authority = await authorityOf(api);
  ({ roots } = await api.operator()(getTrustBundle, {}));
});

/** What a host keeps: the node it is, and the certificate it shows. */
type Machine = { nodeId: string | undefined; tls: { cert: string; key: string } };

type TokenOptions = { node_id?: string; node_name?: string; kind?: "bootstrap"; expires_in_minutes?: number };
const newToken = (body: TokenOptions = {}) => api.operator(org.id)(createEnrollmentToken, { body });

async function join(machine: Machine, token: string, { force = false } = {}): Promise<void> {
  const { key, csr } = await makeKeyRequest();
  const node_id = force ? undefined : machine.nodeId;
  const body = { token, csr, facts: hostFacts, ...(node_id === undefined ? {} : { node_id }) };
  const joined = await api.operator()(enrollNode, { body });
  Object.assign(machine, { nodeId: joined.node_id, tls: { cert: joined.certificate, key } });
}

const blank = (): Machine => ({ nodeId: undefined, tls: { cert: "", key: "" } });

async function aNode(): Promise<Machine & { nodeId: string }> {
  const machine = blank();
  await join(machine, (await newToken()).token);
  expect(await heartbeat(machine)).toMatchObject({ status: 200 });
  return machine as Machine & { nodeId: string };
}

async function heartbeat({ nodeId, tls }: Machine) {
  const client = openClient(api.nodeUrl, { ...tls, ca: roots });
  const path = `/internal/v1/nodes/${nodeId}/heartbeat`;
  return client.ask({ method: "POST", path, body: heartbeatOf() }).finally(client.close);
}

/** Another machine was enrolled as its node, and it still presents its own certificate. */
async function replacedMachine(): Promise<Machine & { nodeId: string }> {
  const machine = await aNode();
  await join({ ...machine }, (await newToken({ node_id: machine.nodeId })).token);
  return machine;
}

/** What the node-facing listener says to the machine. */
async function refusedHeartbeat(machine: Machine): Promise<ErrorEnvelope> {
  const { status, body } = await heartbeat(machine);
  expect(status).toBe(401);
  return body as ErrorEnvelope;
}

const refusedJoin = (machine: Machine, token: string) => refusal(join(machine, token));

async function refusal(work: Promise<unknown>): Promise<ErrorEnvelope> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof CallError) return error.envelope;
  throw error;
}

const change = (nodeId: string, what: NodeChange) =>
  api.operator(org.id)(changeNode, { params: { node_id: nodeId }, body: { change: what } });

const longAgo = () => new Date(Date.now() - 25 * 3_600_000);

/** Does what a person would who reads this; alternatives are advice of their own. */
async function follow(advice: string, machine: Machine): Promise<void> {
  const commands = [...advice.matchAll(/`holdfast ([^`]+)`/g)].map(([, command = ""]) => command);
  let token: string | undefined;
  for (const command of commands) {
    const node = / (?:--node|reactivate) (\S+)/.exec(command)?.[1]?.replace("<id>", machine.nodeId ?? "unknown");
    if (command.startsWith("node token create")) token = (await newToken(bindingOf(command, node))).token;
    else if (command.startsWith("node reactivate")) await change(node ?? "", "reactivate");
    else if (command.startsWith("agent join")) {
      // A person makes the token first, wherever the sentence names it.
      token ??= (await newToken()).token;
      await join(machine, token, { force: command.includes("--force") });
      token = undefined;
    } else if (command.startsWith("host rotate-token"))
      continue; // For VM hosts, whose registration has tests of its own.
    else throw new Error(`nobody knows how to follow \`${command}\``);
  }
  if (token !== undefined && !commands.some((command) => command.startsWith("agent join")))
    await join(machine, token);
}

function bindingOf(command: string, node: string | undefined): TokenOptions {
  const kind = command.includes("--bootstrap") ? ({ kind: "bootstrap" } as const) : {};
  if (node === undefined) return kind;
  return uuidForm.test(node) ? { ...kind, node_id: node } : { ...kind, node_name: node };
}

type Case = { machine: Machine; refusal: { code: string; advice: string } };
const refusalOf = ({ code, next_step }: ErrorEnvelope) => ({ code, advice: next_step });

const cases: Record<string, [code: string, make: () => Promise<Case>]> = {
  "a revoked node": [
    "identity_revoked",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "revoke");
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a retired node": [
    "identity_retired",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "retire");
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a retired node whose certificate has expired": [
    "identity_retired",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "retire");
      machine.tls = await certificateFor(machine.nodeId, authority, longAgo());
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "an expired certificate": [
    "cert_expired",
    async () => {
      const machine = await aNode();
      machine.tls = await certificateFor(machine.nodeId, authority, longAgo());
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a certificate that a new enrollment has replaced": [
    "certificate_replaced",
    async () => {
      const machine = await replacedMachine();
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a certificate that a new enrollment has replaced, on the node's page": [
    "auth_failed",
    async () => {
      const machine = await replacedMachine();
      const { next_step } = await refusedHeartbeat(machine);
      const page = () => api.operator(org.id)(getNode, { params: { node_id: machine.nodeId } });
      await expect.poll(async () => (await page()).attention.map(({ code }) => code)).toContain("auth_failed");
      const item = (await page()).attention.find(({ code }) => code === "auth_failed");
      expect(item?.next_step, "as the agent is answered").toBe(next_step);
      return { machine, refusal: { code: item?.code ?? "", advice: item?.next_step ?? "" } };
    },
  ],
  "a certificate of another CA": [
    "certificate_untrusted",
    async () => {
      const nodeId = uuidv7();
      const machine = { nodeId, tls: await certificateFor(nodeId, temporaryAuthority(new Date())) };
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a node that this server has never had": [
    "certificate_unusable",
    async () => {
      const nodeId = uuidv7();
      const machine = { nodeId, tls: await certificateFor(nodeId, authority) };
      return { machine, refusal: refusalOf(await refusedHeartbeat(machine)) };
    },
  ],
  "a quarantined node, on its page": [
    "node_quarantined",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "fence");
      const { attention } = await api.operator(org.id)(getNode, { params: { node_id: machine.nodeId } });
      return { machine, refusal: { code: attention[0]?.code ?? "", advice: attention[0]?.next_step ?? "" } };
    },
  ],
  "a revoked node, on its page": [
    "identity_revoked",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "revoke");
      const { attention } = await api.operator(org.id)(getNode, { params: { node_id: machine.nodeId } });
      return { machine, refusal: { code: attention[0]?.code ?? "", advice: attention[0]?.next_step ?? "" } };
    },
  ],
  "a change that a revoked node does not allow": [
    "node_change_refused",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "revoke");
      const { code, message } = await refusal(change(machine.nodeId, "drain"));
      return { machine, refusal: { code, advice: `${message} \`holdfast node reactivate <id>\`` } };
    },
  ],
  "a token for a retired node": [
    "node_retired",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "retire");
      return { machine, refusal: refusalOf(await refusal(newToken({ node_id: machine.nodeId }))) };
    },
  ],
  "an unknown token": [
    "enrollment_token_unknown",
    async () => {
      const machine = blank();
      return { machine, refusal: refusalOf(await refusedJoin(machine, `hfe_${"u".repeat(43)}`)) };
    },
  ],
  "a used token": [
    "enrollment_token_used",
    async () => {
      const [machine, { token }] = [blank(), await newToken()];
      await join(blank(), token);
      return { machine, refusal: refusalOf(await refusedJoin(machine, token)) };
    },
  ],
  "a revoked token": [
    "enrollment_token_revoked",
    async () => {
      const [machine, { id, token }] = [blank(), await newToken()];
      await api.operator(org.id)(revokeEnrollmentToken, { params: { token_id: id } });
      return { machine, refusal: refusalOf(await refusedJoin(machine, token)) };
    },
  ],
  "an expired token": [
    "enrollment_token_expired",
    async () => {
      const [machine, { id, token }] = [blank(), await newToken()];
      await superuser`UPDATE enrollment_tokens SET expires_at = now() WHERE id = ${id}`;
      return { machine, refusal: refusalOf(await refusedJoin(machine, token)) };
    },
  ],
  "a token for another node": [
    "enrollment_token_wrong_node",
    async () => {
      const [machine, other] = [await aNode(), await aNode()];
      return {
        machine,
        refusal: refusalOf(await refusedJoin(machine, (await newToken({ node_id: other.nodeId })).token)),
      };
    },
  ],
  "a token for a new node on a machine that is one": [
    "enrollment_token_wrong_node",
    async () => {
      const machine = await aNode();
      return { machine, refusal: refusalOf(await refusedJoin(machine, (await newToken()).token)) };
    },
  ],
  "a token for a new node on a machine that was retired": [
    "node_retired",
    async () => {
      const machine = await aNode();
      await change(machine.nodeId, "retire");
      return { machine, refusal: refusalOf(await refusedJoin(machine, (await newToken()).token)) };
    },
  ],
  "a token on a machine of another installation": [
    "enrollment_token_wrong_node",
    async () => {
      const machine = { ...blank(), nodeId: uuidv7() };
      return { machine, refusal: refusalOf(await refusedJoin(machine, (await newToken()).token)) };
    },
  ],
  "a bootstrap token of a revoked node": [
    "identity_revoked",
    async () => {
      const machine = await aNode();
      const { token } = await newToken({ kind: "bootstrap", node_id: machine.nodeId });
      await change(machine.nodeId, "revoke");
      return { machine, refusal: refusalOf(await refusedJoin(machine, token)) };
    },
  ],
  "a bootstrap token of a retired node": [
    "node_retired",
    async () => {
      const machine = await aNode();
      const { token } = await newToken({ kind: "bootstrap", node_id: machine.nodeId });
      await change(machine.nodeId, "retire");
      return { machine, refusal: refusalOf(await refusedJoin(machine, token)) };
    },
  ],
};

describe("advice that comes with a refusal", () => {
  it.for(Object.entries(cases))("ID-09 works when it is followed: %s", async ([, [code, make]]) => {
    const first = await make();
    expect(first.refusal.code).toBe(code);
    const alternatives = first.refusal.advice.split("; or ").length;
    for (let chosen = 0; chosen < alternatives; chosen += 1) {
      const { machine, refusal } = chosen === 0 ? first : await make();
      const advice = refusal.advice.includes("; or ")
        ? (refusal.advice.split("; or ")[chosen] ?? refusal.advice)
        : refusal.advice;
      await follow(advice, machine);
      expect(await heartbeat(machine), advice).toMatchObject({
        status: 200,
        body: { node: { status: "active" } },
      });
    }
  });

  /** What `holdfast agent diagnose` prints of these on the host. */
  it.for<["identity_revoked" | "identity_retired" | "cert_expired" | "node_quarantined", NodeChange | undefined]>([
    ["identity_revoked", "revoke"],
    ["identity_retired", "retire"],
    ["node_quarantined", "fence"],
    ["cert_expired", undefined],
  ])("ID-09 works when the host's own diagnosis is followed: %s", async ([reason, what]) => {
    const machine = await aNode();
    if (what) await change(machine.nodeId, what);
    else machine.tls = await certificateFor(machine.nodeId, authority, longAgo());
    await follow(diagnosticReasons[reason].nextStep, machine);
    expect(await heartbeat(machine)).toMatchObject({ status: 200, body: { node: { status: "active" } } });
  });

  it("ID-09 names no command where only the clock can be put right", async () => {
    const machine = await aNode();
    machine.tls = await certificateFor(machine.nodeId, authority, new Date(Date.now() + 3_600_000));
    const { code, next_step } = await refusedHeartbeat(machine);
    expect(code).toBe("certificate_not_yet_valid");
    expect(next_step).not.toContain("`holdfast");
  });
});
