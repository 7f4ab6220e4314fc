// The audit trail: complete, append-only, and found again.

import { type AuditEvent, listAudit, listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { changePassword } from "@holdfast/contracts/endpoints/me";
import { inviteMember, removeMember } from "@holdfast/contracts/endpoints/members";
import { updateOrganization } from "@holdfast/contracts/endpoints/organizations";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  firstAdmin,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { dedupeKeyHash } from "../src/audit/record.ts";
import { withOrg } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let owner: string;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "audited");
  owner = await tokenFor(api, org, "owner");
});

async function events(query: Record<string, unknown> = {}): Promise<AuditEvent[]> {
  return (await api.as(owner)(listAudit, { query })).items;
}

describe("what is written", () => {
  it("AUDIT-01 tells actor, role, action, target, result and correlation id", async () => {
    const member = await addMember(api, org, "admin@audited.example", "admin");
    const correlationId = "audit-test-1";
    const project = await member.client()(createProject, { body: { slug: "seen", name: "Seen" }, correlationId });
    const [event] = await events({ correlation_id: correlationId });
    expect(event).toMatchObject({
      actor_type: "user",
      actor_id: member.me.id,
      actor_name: "admin@audited.example",
      role: "admin",
      action: "project.create",
      target_type: "project",
      target_id: project.id,
      target_name: "seen",
      result: "allowed",
      reason: null,
    });
  });

  it("AUDIT-01 tells who acted as operator in a tenant's organization", async () => {
    await api.operator(org.id)(createProject, { body: { slug: "by-op", name: "Op" }, correlationId: "op-1" });
    const [event] = await events({ correlation_id: "op-1" });
    expect(event).toMatchObject({ actor_type: "local_operator", actor_name: "local operator", role: "operator" });
  });

  it("AUDIT-01 keeps refused and failed attempts, with the reason", async () => {
    const member = await tokenFor(api, org, "member");
    const attempt = (token: string, slug: string, correlationId: string) =>
      api
        .as(token)(createProject, { body: { slug, name: "x" }, correlationId })
        .catch(() => undefined);
    await attempt(member, "nope", "denied-1");
    await attempt(owner, "by-op", "failed-1");
    expect(await events({ correlation_id: "denied-1" })).toMatchObject([
      { result: "denied", reason: "forbidden", target_type: "project", target_id: null, target_name: "nope" },
    ]);
    expect(await events({ correlation_id: "failed-1" })).toMatchObject([
      { result: "failed", reason: "name_taken", target_type: "project", target_name: "by-op" },
    ]);
  });

  it("AUDIT-01 names what a refused request was about", async () => {
    const id = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
    const wanted = { params: { node_id: id }, body: { type: "node.noop" }, correlationId: "refused-1" };
    await expect(api.as(owner)(createTask, wanted)).rejects.toThrow();
    expect(await events({ correlation_id: "refused-1" })).toMatchObject([
      { action: "task.create", target_type: "node", target_id: id },
    ]);
    const removal = { params: { user_id: id }, correlationId: "refused-2" };
    await expect(api.as(owner)(removeMember, removal)).rejects.toThrow();
    expect(await events({ correlation_id: "refused-2" })).toMatchObject([
      { target_type: "member", target_id: id },
    ]);
    const member = await tokenFor(api, org, "member");
    const renaming = { params: { org_id: org.id }, body: { name: "Mine now" }, correlationId: "refused-3" };
    await expect(api.as(member)(updateOrganization, renaming)).rejects.toThrow();
    expect(await events({ correlation_id: "refused-3" })).toMatchObject([
      { result: "denied", target_type: "organization", target_id: org.id, target_name: "Mine now" },
    ]);
    const invited = { body: { email: "who@audited.example" }, correlationId: "refused-4" };
    await expect(api.as(member)(inviteMember, invited)).rejects.toThrow();
    expect(await events({ correlation_id: "refused-4" })).toMatchObject([
      { result: "denied", target_type: "member", target_id: null, target_name: "who@audited.example" },
    ]);
  });

  it("AUDIT-01 keeps a failed sign-in on the platform's trail", async () => {
    const body = JSON.stringify({ email: "who@example.com", password: "wrong wrong wrong" });
    const headers = { "content-type": "application/json", "x-correlation-id": "signin-1" };
    await fetch(`${api.url}/v1/sign-in`, { method: "POST", headers, body });
    const { items } = await api.operator()(listPlatformAudit, { query: { correlation_id: "signin-1" } });
    expect(items).toMatchObject([
      {
        action: "session.create",
        result: "failed",
        reason: "sign_in_failed",
        org_id: null,
        actor_type: "anonymous",
      },
    ]);
    expect(await events({ correlation_id: "signin-1" })).toEqual([]);
  });

  it("AUDIT-01 keeps a wrong current password, and a wrong password for an invitation", async () => {
    const member = await addMember(api, org, "careful@audited.example", "member");
    const body = { current_password: "not the one", new_password: "a new long password" };
    await member
      .client()(changePassword, { body, correlationId: "wrong-1" })
      .catch(() => undefined);
    const other = await createOrg(api, "inviting");
    const { url } = await api.operator(other.id)(inviteMember, { body: { email: "careful@audited.example" } });
    const secret = new URL(url).hash.slice(1);
    await fetch(`${api.url}/v1/links/redeem`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-correlation-id": "wrong-2" },
      body: JSON.stringify({ secret, password: "not the one either" }),
    });
    const reasons = ["wrong-1", "wrong-2"].map(async (correlation_id) => {
      const { items } = await api.operator()(listPlatformAudit, { query: { correlation_id } });
      return items.map((event) => [event.action, event.result, event.reason, event.target_name]);
    });
    expect(await Promise.all(reasons)).toEqual([
      [["user.change_password", "failed", "sign_in_failed", "careful@audited.example"]],
      [["link.redeem", "failed", "sign_in_failed", "careful@audited.example"]],
    ]);
  });

  it("AUDIT-01 holds no secret", async () => {
    const { token } = await api.as(owner)(createToken, { body: { name: "secret-holder" } });
    const { url } = await api.as(owner)(inviteMember, { body: { email: "x@audited.example" } });
    const { superuser } = openRoles(api.database);
    const [dump] = await superuser`SELECT string_agg(e::text, ' ') AS all FROM audit_events e`;
    for (const secret of [token, new URL(url).hash.slice(1), owner]) expect(dump?.["all"]).not.toContain(secret);
  });

  it("AUDIT-01 writes nothing when the action itself is rolled back", async () => {
    const { superuser } = openRoles(api.database);
    await superuser`ALTER TABLE audit_events ADD CONSTRAINT no_canary CHECK (target_name IS DISTINCT FROM 'canary-1')`;
    const create = api.as(owner)(createProject, { body: { slug: "canary-1", name: "x" } });
    await expect(create).rejects.toThrow();
    expect(await superuser`SELECT FROM projects WHERE slug = 'canary-1'`).toHaveLength(0);
  });
});

describe("append-only", () => {
  it.each(["holdfast_app", "holdfast_system"] as const)(
    "AUDIT-01 lets %s neither change nor remove",
    async (role) => {
      const { app, system } = openRoles(api.database);
      const attempts = [
        "UPDATE audit_events SET action = 'a.b'",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events",
      ];
      for (const statement of attempts) {
        const run =
          role === "holdfast_app" ? withOrg(app, org.id, (tx) => tx.unsafe(statement)) : system.unsafe(statement);
        await expect(run, statement).rejects.toMatchObject({ code: "42501" });
      }
    },
  );
});

describe("finding", () => {
  beforeAll(async () => {
    for (const slug of ["find-one", "find-two"]) {
      await api.as(owner)(createProject, { body: { slug, name: "100%_x" } });
    }
  });

  it("AUDIT-01 filters by each field", async () => {
    const all = await events({ limit: 200 });
    expect(all.length).toBeGreaterThan(5);
    const checks: [Record<string, unknown>, (event: AuditEvent) => boolean][] = [
      [{ action: "project.create" }, (event) => event.action === "project.create"],
      [{ action: "token." }, (event) => event.action.startsWith("token.")],
      [{ result: "denied" }, (event) => event.result === "denied"],
      [{ actor: "local oper" }, (event) => event.actor_name.includes("local oper")],
      [{ target: "FIND-ONE" }, (event) => event.target_name === "find-one"],
      [{ since: all[2]?.at }, (event) => event.at >= (all[2]?.at ?? "")],
      [{ until: all[2]?.at }, (event) => event.at < (all[2]?.at ?? "")],
    ];
    for (const [query, matches] of checks) {
      const found = await events({ ...query, limit: 200 });
      expect(found.length, JSON.stringify(query)).toBeGreaterThan(0);
      expect(found.map((event) => event.id)).toEqual(all.filter(matches).map((event) => event.id));
    }
  });

  it("AUDIT-01 takes wildcards of SQL literally", async () => {
    expect(await events({ target: "%" })).toEqual([]);
    expect(await events({ actor: "_" })).toEqual([]);
  });

  it("AUDIT-01 is closed to members and to other organizations", async () => {
    const member = await tokenFor(api, org, "member");
    await expect(api.as(member)(listAudit, {})).rejects.toMatchObject({ envelope: { code: "forbidden" } });
    const other = await tokenFor(api, await createOrg(api, "other-org"), "owner");
    const { items } = await api.as(other)(listAudit, {});
    expect(items.map((event) => event.target_name)).toEqual(["other-org owner", "other-org"]);
  });

  it("AUDIT-01 shows the operator all organizations", async () => {
    const admin = await firstAdmin(api);
    const { items } = await admin.client()(listPlatformAudit, { query: { limit: 200 } });
    expect(new Set(items.map((event) => event.org_id)).size).toBeGreaterThan(2);
  });
});

describe("dedupe key", () => {
  const by = { actor_type: "user", actor_id: "u1", actor_name: "a", role: "admin" } as const;
  const event = { by, action: "token.create", target: { type: "token", id: "t1" }, reason: "forbidden" } as const;

  it("AUDIT-03 is equal for repetitions and differs for another actor, target, action or reason", () => {
    const same = dedupeKeyHash({ ...event, by: { ...by, actor_name: "renamed" } });
    expect(same).toBe(dedupeKeyHash(event));
    const others = [
      { ...event, by: { ...by, actor_id: "u2" } },
      { ...event, target: { type: "token", id: "t2" } },
      { ...event, action: "token.revoke" },
      { ...event, reason: "not_found" as const },
    ].map(dedupeKeyHash);
    expect(new Set([same, ...others]).size).toBe(5);
  });
});
