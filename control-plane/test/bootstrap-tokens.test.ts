// Bootstrap tokens over the real api: one host's token, used again and again, and everything it refuses.

import { CallError } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  createEnrollmentToken,
  enrollNode,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode, type NodeChange, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  hostFacts,
  makeKeyRequest,
  sendHeartbeatFrom,
  tokenOf,
  unsigned,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;
let count = 0;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
});
beforeEach(async () => {
  count += 1;
  org = await createOrg(api, `org-${count}`);
  await superuser`DELETE FROM rate_limits`;
});

type Making = { node_id?: string; node_name?: string; expires_in_minutes?: number };

const make = (body: Making) =>
  api.operator(org.id)(createEnrollmentToken, { body: { kind: "bootstrap", ...body } });
const revoke = (id: string) => api.operator(org.id)(revokeEnrollmentToken, { params: { token_id: id } });
const change = (id: string, what: NodeChange) =>
  api.operator(org.id)(changeNode, { params: { node_id: id }, body: { change: what } });
const use = (token: string, options: Parameters<typeof enrollTestNode>[2] = {}) =>
  enrollTestNode(api, org.id, { token, ...options });
const ask = async (token: string, more: { csr?: string; node_id?: string; node_name?: string } = {}) =>
  api.operator()(enrollNode, {
    body: { token, csr: (await makeKeyRequest()).csr, facts: hostFacts, ...more },
  });
const audited = async (action: string) =>
  (await api.operator(org.id)(listAudit, { query: { action, limit: 200 } })).items;
const listed = async (id: string) =>
  (await api.operator(org.id)(listEnrollmentTokens, {})).items.find((token) => token.id === id);

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(() => "it was not refused", codeOf);
}

function codeOf(error: unknown): string {
  if (error instanceof CallError) return error.envelope.code;
  throw error;
}

describe("making one", () => {
  it("ID-01 has a prefix of its own, lasts 30 days, is shown once and audited", async () => {
    const made = await make({ node_name: "Reef-1" });
    expect(made.token).toMatch(/^hfb_[\w-]{43}\.[\w-]{43}$/);
    expect(made).toMatchObject({ kind: "bootstrap", node_id: null, node_name: "reef-1", uses: 0, used_at: null });
    const pairing = await tokenOf(api, org.id);
    expect(made.token.split(".")[1], "the same root").toBe(pairing.split(".")[1]);
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(30 * 86_400_000);
    const [event] = (await audited("node.token_create")).filter(({ target_id }) => target_id === made.id);
    expect(event).toMatchObject({ target_name: "reef-1", details: { kind: "bootstrap", node_id: null } });
    expect(JSON.stringify([await listed(made.id), event]) + api.logged()).not.toMatch(/hfb_[\w-]{20}/);
    const [row] = await superuser`SELECT t::text AS all FROM enrollment_tokens t WHERE id = ${made.id}`;
    expect(row?.["all"]).not.toContain("hfb_");
  });

  it("ID-01 lasts as long as was asked for, at most a year; a pairing token at most a day", async () => {
    const year = 365 * 24 * 60;
    const made = await make({ node_name: "a", expires_in_minutes: year });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(year * 60_000);
    expect(await refusal(make({ node_name: "a", expires_in_minutes: year + 1 }))).toBe("invalid_request");
    const pairing = (minutes: number) =>
      api.operator(org.id)(createEnrollmentToken, { body: { expires_in_minutes: minutes } });
    expect(await pairing(1440)).toMatchObject({ kind: "pairing" });
    expect(await refusal(pairing(1441))).toBe("invalid_request");
  });

  it("ID-01 needs one node, which is neither retired nor revoked nor somebody else's", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "there" });
    expect(await refusal(make({}))).toBe("invalid_request");
    expect(await refusal(make({ node_id: node.id, node_name: "there" }))).toBe("invalid_request");
    expect(await refusal(make({ node_id: uuidv7() }))).toBe("not_found");
    const stranger = api.as(await tokenFor(api, await createOrg(api, `stranger-${count}`), "owner"));
    const body = { kind: "bootstrap", node_id: node.id } as const;
    expect(await refusal(stranger(createEnrollmentToken, { body }))).toBe("not_found");
    const byName = await stranger(createEnrollmentToken, { body: { kind: "bootstrap", node_name: "there" } });
    expect(byName.node_id, "a name is the organization's own").toBeNull();
    const member = api.as(await tokenFor(api, org, "member"));
    expect(await refusal(member(createEnrollmentToken, { body }))).toBe("forbidden");
    await change(node.id, "revoke");
    expect(await refusal(make({ node_id: node.id }))).toBe("node_change_refused");
    expect(await refusal(make({ node_name: "there" }))).toBe("node_change_refused");
    await change(node.id, "retire");
    expect(await refusal(make({ node_id: node.id }))).toBe("node_retired");
    expect((await make({ node_name: "there" })).node_id, "the name is free again").toBeNull();
  });

  it("ID-01 is bound at once to a node that is there, by name or id", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "there" });
    expect(await make({ node_name: "there" })).toMatchObject({ node_id: node.id, node_name: "there" });
    expect(await make({ node_id: node.id })).toMatchObject({ node_id: node.id, node_name: "there" });
  });
});

describe("using one", () => {
  it("ID-01 makes the node the first time, and is that same node's ever after", async () => {
    const made = await make({ node_name: "reef-1" });
    const first = await use(made.token, { hostname: "some-image" });
    expect(first.name).toBe("reef-1");
    expect((await sendHeartbeatFrom(first)).status).toBe(200);
    const second = await use(made.token, { hostname: "rebuilt" });
    const third = await use(made.token);
    expect([second.id, second.name, third.id]).toEqual([first.id, "reef-1", first.id]);
    for (const old of [first, second]) {
      expect((await sendHeartbeatFrom(old)).body).toMatchObject({
        code: "certificate_replaced",
        message: expect.stringContaining("replaced"),
      });
    }
    expect((await sendHeartbeatFrom(third)).body).toMatchObject({ node: { status: "active" } });
    expect(await listed(made.id)).toMatchObject({
      node_id: first.id,
      enrolled_node_id: first.id,
      uses: 3,
      used_at: expect.any(String),
    });
  });

  it("ID-01 leaves each use in the node's history: which machine, and when the other was last heard", async () => {
    const made = await make({ node_name: "reef-1" });
    const node = await use(made.token, { hostname: "host-a" });
    await sendHeartbeatFrom(node);
    await use(made.token, { hostname: "host-b" });
    const { items } = await api.operator(org.id)(listAudit, { query: { target: node.id } });
    const token = { token_id: made.id, token_kind: "bootstrap" };
    expect(items.filter(({ action }) => action === "node.enroll")).toMatchObject([
      { details: { ...token, hostname: "host-b", again: true, last_heard_at: expect.any(String) } },
      { details: { ...token, hostname: "host-a", again: false, last_heard_at: null } },
    ]);
  });

  it("ID-01 gives the same answer again to the same key", async () => {
    const { token, id } = await make({ node_name: "reef-1" });
    const { csr } = await makeKeyRequest();
    const askAgain = async (more = {}) => unsigned(await ask(token, { csr, ...more }));
    const first = await askAgain();
    expect(await askAgain()).toEqual(first);
    expect(await askAgain({ node_id: first.node_id })).toEqual(first);
    expect(await listed(id)).toMatchObject({ uses: 1 });
    const several = await Promise.all(Array.from({ length: 4 }, () => askAgain()));
    for (const one of several) expect(one).toEqual(first);
  });

  it("ID-01 does not give a key its certificate back that another host has ended, or that is over", async () => {
    const { token } = await make({ node_name: "reef-1" });
    const { csr } = await makeKeyRequest();
    await ask(token, { csr });
    const later = await use(token);
    expect(await refusal(ask(token, { csr }))).toBe("csr_invalid");
    expect((await sendHeartbeatFrom(later)).status, "the newest stays").toBe(200);
    const { csr: slow } = await makeKeyRequest();
    await ask(token, { csr: slow });
    await superuser`UPDATE node_certificates SET not_after = now() - interval '1 second'`;
    expect(await refusal(ask(token, { csr: slow }))).toBe("csr_invalid");
  });

  it("ID-01 by many hosts at once makes one node, and one of them is it", async () => {
    const { token } = await make({ node_name: "reef-1" });
    const nodes = await Promise.all(Array.from({ length: 5 }, () => use(token)));
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(1);
    const answers = await Promise.all(nodes.map((node) => sendHeartbeatFrom(node)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401]);
    expect(await audited("node.enroll")).toHaveLength(5);
  });

  it("ID-01 of one name is one host's, also when several were made before it was there", async () => {
    for (let round = 0; round < 5; round += 1) {
      const made = await Promise.all(Array.from({ length: 4 }, () => make({ node_name: `reef-${round}` })));
      const nodes = await Promise.all(made.slice(1).map(({ token }) => use(token)));
      const [node] = nodes;
      expect(new Set(nodes.map(({ id }) => id)).size).toBe(1);
      expect(await listed(made[0]?.id ?? ""), "unused, and bound all the same").toMatchObject({
        node_id: node?.id,
        uses: 0,
      });
    }
  });

  it("ID-01 keeps its node when that is renamed", async () => {
    const made = await make({ node_name: "reef-1" });
    const node = await use(made.token);
    await api.operator(org.id)(updateNode, { params: { node_id: node.id }, body: { name: "reef-9" } });
    expect(await listed(made.id)).toMatchObject({ node_name: "reef-9" });
    for (const name of ["reef-1", "Reef-9", node.id]) {
      expect(await ask(made.token, { node_name: name })).toMatchObject({ node_id: node.id, node_name: "reef-9" });
    }
  });

  it("ID-09 leaves a fenced node fenced", async () => {
    const { token } = await make({ node_name: "reef-1" });
    const node = await use(token);
    await change(node.id, "fence");
    expect((await sendHeartbeatFrom(await use(token))).body).toMatchObject({ node: { status: "quarantined" } });
  });

  it("SEC-03 is limited, so that a host which keeps nothing does not fill the tables", async () => {
    const { token } = await make({ node_name: "reef-1" });
    const other = await make({ node_name: "reef-2" });
    for (let attempt = 0; attempt < 30; attempt += 1) await ask(token);
    expect(await refusal(ask(token))).toBe("rate_limit_exceeded");
    expect(await ask(other.token), "another host is not held up").toMatchObject({ node_name: "reef-2" });
  });
});

describe("refusing one", () => {
  const cases: Record<string, () => Promise<{ token: string; more?: object; expected: string }>> = {
    expired: async () => {
      const { token, id } = await make({ node_name: "reef-1" });
      await ask(token);
      await superuser`UPDATE enrollment_tokens SET expires_at = now() - interval '1 second' WHERE id = ${id}`;
      return { token, expected: "enrollment_token_expired" };
    },
    revoked: async () => {
      const { token, id } = await make({ node_name: "reef-1" });
      await ask(token);
      await revoke(id);
      return { token, expected: "enrollment_token_revoked" };
    },
    "revoked before its first use": async () => {
      const { token, id } = await make({ node_name: "reef-1" });
      await revoke(id);
      return { token, expected: "enrollment_token_revoked" };
    },
    "of another node than the machine is": async () => {
      const { token } = await make({ node_name: "reef-1" });
      await ask(token);
      return { token, more: { node_id: uuidv7() }, expected: "enrollment_token_wrong_node" };
    },
    "not used yet, on a machine that is a node": async () => {
      const { token } = await make({ node_name: "reef-1" });
      return { token, more: { node_id: uuidv7() }, expected: "enrollment_token_wrong_node" };
    },
    "of another node than the machine takes itself for": async () => {
      const { token } = await make({ node_name: "reef-1" });
      return { token, more: { node_name: "reef-2" }, expected: "enrollment_token_wrong_node" };
    },
    "of another node than the machine takes itself for, later": async () => {
      const { token } = await make({ node_name: "reef-1" });
      await ask(token);
      return { token, more: { node_name: "reef-2" }, expected: "enrollment_token_wrong_node" };
    },
    "of a revoked node": async () => {
      const { token } = await make({ node_name: "reef-1" });
      await change((await use(token)).id, "revoke");
      return { token, expected: "identity_revoked" };
    },
    "of a retired node": async () => {
      const { token } = await make({ node_name: "reef-1" });
      await change((await use(token)).id, "retire");
      return { token, expected: "node_retired" };
    },
    "of a node that was revoked and came back by a pairing token": async () => {
      const { token } = await make({ node_name: "reef-1" });
      const node = await use(token);
      await change(node.id, "revoke");
      await enrollTestNode(api, org.id, { nodeId: node.id });
      return { token, expected: "enrollment_token_revoked" };
    },
    "whose name another node has taken meanwhile": async () => {
      const { token } = await make({ node_name: "reef-1" });
      await enrollTestNode(api, org.id, { hostname: "reef-1" });
      return { token, expected: "name_taken" };
    },
    "with a request that is none": async () => ({
      token: (await make({ node_name: "reef-1" })).token,
      more: { csr: "nothing" },
      expected: "csr_invalid",
    }),
  };

  it.each(Object.entries(cases))(
    "ID-01 that is %s: says why, audits it, and changes nothing",
    async (_, prepare) => {
      const { token, more, expected } = await prepare();
      const state = async () => superuser`
      SELECT (SELECT json_agg(n ORDER BY id) FROM nodes n) AS nodes,
             (SELECT json_agg(c.serial ORDER BY serial) FROM node_certificates c) AS certificates,
             (SELECT json_agg(t ORDER BY id) FROM enrollment_tokens t) AS tokens`;
      const before = await state();
      expect(await refusal(ask(token, more))).toBe(expected);
      expect(await state()).toEqual(before);
      const [event] = await audited("node.enroll");
      expect(event).toMatchObject({
        actor_type: "anonymous",
        result: "failed",
        reason: expected,
        target_type: "enrollment_token",
        details: { token_kind: "bootstrap" },
      });
    },
  );

  it("ID-01 never stands for a live one of the other kind", async () => {
    const bootstrap = (await make({ node_name: "reef-1" })).token;
    const pairing = await tokenOf(api, org.id);
    const swapped = [bootstrap.replace("hfb_", "hfe_"), pairing.replace("hfe_", "hfb_")];
    for (const token of swapped) expect(await refusal(ask(token))).toBe("enrollment_token_unknown");
  });

  it("ID-01 after its revocation leaves the node what it is, and says what to do", async () => {
    const { token, id } = await make({ node_name: "reef-1" });
    const node = await use(token);
    await revoke(id);
    expect((await sendHeartbeatFrom(node)).status).toBe(200);
    const [event] = await audited("node.token_revoke");
    expect(event).toMatchObject({ target_id: id, details: { kind: "bootstrap", node_id: node.id } });
    const refused = await ask(token).catch((error: CallError) => error.envelope);
    expect(refused).toMatchObject({ next_step: expect.stringContaining("--bootstrap --node reef-1") });
  });

  it("ID-09 in the moment of a revocation lets the revocation win, and neither waits for the other without end", async () => {
    for (const kind of ["bootstrap", "pairing"] as const) {
      for (let round = 0; round < 8; round += 1) {
        const node = await enrollTestNode(api, org.id);
        const { token } = await api.operator(org.id)(createEnrollmentToken, { body: { kind, node_id: node.id } });
        const [used] = await Promise.all([ask(token).then(() => "in", codeOf), change(node.id, "revoke")]);
        expect(["in", "identity_revoked"]).toContain(used);
        const { status } = await api.operator(org.id)(getNode, { params: { node_id: node.id } });
        expect(status).toBe("quarantined");
        expect(await refusal(ask(token))).not.toBe("it was not refused");
      }
    }
  });
});
