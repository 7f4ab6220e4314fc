// What a person made ends with the person: removed, demoted, or no operator any more. Every kind of token, at the change
// and again at its use, and what was made with a token ends with the token.

import { CallError } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken, enrollNode } from "@holdfast/contracts/endpoints/enrollment";
import { inviteMember, removeMember, updateMember } from "@holdfast/contracts/endpoints/members";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { createToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  redeem,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  hostFacts,
  makeKeyRequest,
  sendHeartbeatFrom,
  type TestNode,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { consume } from "../src/links/redeem.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;
let org: TestOrg;
let owner: Browser;
let admin: Browser;
let node: TestNode;
let count = 0;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser, system } = openRoles(api.database));
});
beforeEach(async () => {
  count += 1;
  org = await createOrg(api, `reef-${count}`);
  owner = await addMember(api, org, `owner@reef-${count}.example`, "owner");
  admin = await addMember(api, org, `admin@reef-${count}.example`, "admin");
  node = await enrollTestNode(api, org.id, { hostname: "vm-one" });
});

const adminId = () => ({ user_id: admin.me.id ?? "" });
const remove = () => owner.client()(removeMember, { params: adminId() });
const demote = () => owner.client()(updateMember, { params: adminId(), body: { role: "member" } });

const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "no error",
    (error) => (error instanceof CallError ? error.envelope.code : String(error)),
  );

async function takeOver(token: string): Promise<string> {
  const { csr } = await makeKeyRequest();
  return codeOf(api.operator()(enrollNode, { body: { token, csr, facts: hostFacts } }));
}

async function isStillItself(): Promise<boolean> {
  const { status } = await sendHeartbeatFrom(node);
  return status === 200;
}

const audited = async (action: string) => (await owner.client()(listAudit, { query: { action } })).items;

const kinds = [
  ["pairing", () => ({ node_id: node.id })],
  ["bootstrap", () => ({ kind: "bootstrap" as const, node_id: node.id })],
] as const;

describe.for(kinds)("a %s token for a live node", ([kind, body]) => {
  const make = () => admin.client()(createEnrollmentToken, { body: body() });

  it("ID-01 takes nothing over once the admin who made it is removed, and the attempt is audited", async () => {
    const made = await make();
    await remove();
    expect(await takeOver(made.token)).toBe("enrollment_token_revoked");
    expect(await isStillItself()).toBe(true);
    const [attempt] = await audited("node.enroll");
    expect(attempt).toMatchObject({ result: "failed", reason: "enrollment_token_revoked", target_id: made.id });
    const [ended] = await audited("node.token_revoke");
    expect(ended).toMatchObject({ target_id: made.id, actor_name: owner.me.email });
    expect(ended?.details).toMatchObject({ kind: `${kind}_token`, because: "member.remove" });
  });

  it("ID-01 takes nothing over once its maker is demoted, also when they are promoted again", async () => {
    const made = await make();
    await demote();
    expect(await takeOver(made.token)).toBe("enrollment_token_revoked");
    await owner.client()(updateMember, { params: adminId(), body: { role: "admin" } });
    expect(await takeOver(made.token)).toBe("enrollment_token_revoked");
    expect(await isStillItself()).toBe(true);
  });

  it("ID-01 is refused at its use if it was missed when its maker was removed", async () => {
    const made = await make();
    await remove();
    await superuser`UPDATE enrollment_tokens SET revoked_at = NULL WHERE id = ${made.id}`;
    expect(await takeOver(made.token)).toBe("enrollment_token_revoked");
    expect(await isStillItself()).toBe(true);
  });

  it("ID-01 ends with the API token that it was made with", async () => {
    const parent = await owner.client()(createToken, { body: { name: "ci", role: "admin" } });
    const made = await api.as(parent.token)(createEnrollmentToken, { body: body() });
    await owner.client()(revokeToken, { params: { token_id: parent.id } });
    expect(await takeOver(made.token)).toBe("enrollment_token_revoked");
    await superuser`UPDATE enrollment_tokens SET revoked_at = NULL WHERE id = ${made.id}`;
    expect(await takeOver(made.token), "missed at the revocation").toBe("enrollment_token_revoked");
  });

  it("ID-01 still works while its maker may enroll nodes", async () => {
    const made = await make();
    expect(await takeOver(made.token)).toBe("no error");
    expect((await owner.client()(getNode, { params: { node_id: node.id } })).id).toBe(node.id);
  });
});

describe("an invitation", () => {
  const invite = async () =>
    (await admin.client()(inviteMember, { body: { email: `next@reef-${count}.example`, role: "member" } })).url;

  it("SEC-01 ends when the admin who made it may not invite any more", async () => {
    const url = await invite();
    await demote();
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
  });

  it("SEC-01 is refused at its use if it was missed at the change", async () => {
    const url = await invite();
    await remove();
    await superuser`UPDATE one_time_links SET replaced_at = NULL WHERE org_id = ${org.id} AND used_at IS NULL`;
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
    // As if the change came between the first look at the link and its use.
    const secret = new URL(url).hash.slice(1);
    await expect(system.begin((tx) => consume(tx, secret))).rejects.toMatchObject({ code: "link_unknown" });
  });

  it("SEC-01 ends with the API token that it was made with", async () => {
    const parent = await owner.client()(createToken, { body: { name: "ci", role: "admin" } });
    const email = `by-token@reef-${count}.example`;
    const { url } = await api.as(parent.token)(inviteMember, { body: { email } });
    await owner.client()(revokeToken, { params: { token_id: parent.id } });
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
  });
});

describe("a platform operator", () => {
  it("SEC-01 who is one no more leaves no token behind that works", async () => {
    await superuser`UPDATE users SET operator = true WHERE id = ${admin.me.id}`;
    await remove();
    const operator = admin.client(org.id);
    const api_token = await operator(createToken, { body: { name: "op", role: "owner" } });
    const pairing = await operator(createEnrollmentToken, { body: { node_id: node.id } });
    const { url } = await operator(inviteMember, { body: { email: `op@reef-${count}.example` } });
    await superuser`UPDATE users SET operator = false WHERE id = ${admin.me.id}`;
    expect(await codeOf(api.as(api_token.token)(getNode, { params: { node_id: node.id } }))).toBe(
      "unauthenticated",
    );
    expect(await takeOver(pairing.token)).toBe("enrollment_token_revoked");
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
  });
});
