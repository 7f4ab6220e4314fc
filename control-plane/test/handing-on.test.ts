// Nobody hands on more than they hold, and what they handed on ends with them: invitations, tokens,
// tokens made with tokens, and all of it when several people act at once.

import { CallError } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getMe } from "@holdfast/contracts/endpoints/me";
import {
  cancelInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  removeMember,
  updateMember,
} from "@holdfast/contracts/endpoints/members";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { createProject, listProjects } from "@holdfast/contracts/endpoints/projects";
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
import { openRoles } from "../../testkit/database/database.ts";

let api: TestApi;
let org: TestOrg;
let owner: Browser;
let count = 0;

beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(async () => {
  count += 1;
  org = await createOrg(api, `team-${count}`);
  owner = await addMember(api, org, `owner@team-${count}.example`, "owner");
});

const idOf = (browser: Browser) => browser.me.id ?? "";
const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "no error",
    (error) => (error instanceof CallError ? error.envelope.code : String(error)),
  );

describe("an invitation", () => {
  const inviteBy = (inviter: Browser, role: "owner" | "admin" | "member") =>
    inviter.client()(inviteMember, { body: { email: `next-${count}@example.com`, role } });

  it("SEC-01 ends when the person who made it is removed", async () => {
    const second = await addMember(api, org, `second@team-${count}.example`, "owner");
    const { url } = await inviteBy(second, "owner");
    await owner.client()(removeMember, { params: { user_id: idOf(second) } });
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
  });

  it("SEC-01 ends when the person who made it may no longer grant its role", async () => {
    const second = await addMember(api, org, `second@team-${count}.example`, "owner");
    const { url } = await inviteBy(second, "owner");
    const params = { user_id: idOf(second) };
    await owner.client()(updateMember, { params, body: { role: "admin" } });
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
    await owner.client()(updateMember, { params, body: { role: "owner" } });
    await expect(redeem(api, url, { name: "Next" }), "ended for good").rejects.toThrow(/link_unknown/);
  });

  it("SEC-03 is listed while it can be used, and cancelled by whoever could have made it", async () => {
    const admin = await addMember(api, org, `admin@team-${count}.example`, "admin");
    const { url } = await inviteBy(owner, "owner");
    const [listed, none] = (await owner.client()(listInvitations, {})).items;
    expect(listed).toMatchObject({ email: `next-${count}@example.com`, role: "owner" });
    expect(none).toBeUndefined();
    const cancel = (by: Browser) => by.client()(cancelInvitation, { params: { invitation_id: listed?.id ?? "" } });
    expect(await codeOf(cancel(admin))).toBe("forbidden");
    expect(await codeOf(cancel(owner))).toBe("no error");
    expect(await codeOf(cancel(owner))).toBe("not_found");
    expect((await owner.client()(listInvitations, {})).items).toEqual([]);
    await expect(redeem(api, url, { name: "Next" })).rejects.toThrow(/link_unknown/);
  });

  it("SEC-01 of an owner cannot be replaced by an admin", async () => {
    const admin = await addMember(api, org, `admin@team-${count}.example`, "admin");
    const { url } = await inviteBy(owner, "owner");
    expect(await codeOf(inviteBy(admin, "member"))).toBe("forbidden");
    expect((await redeem(api, url, { name: "Next" })).me.organizations[0]?.role).toBe("owner");
  });

  it("SEC-03 is made for each of many requests at once, and the last made works", async () => {
    const links = await Promise.all(Array.from({ length: 6 }, () => inviteBy(owner, "member")));
    const admitted = await Promise.allSettled(links.map(({ url }) => redeem(api, url, { name: "Next" })));
    expect(admitted.filter((one) => one.status === "fulfilled")).toHaveLength(1);
  });

  it("SEC-01 cannot be used by a narrowed token to get out of its scopes", async () => {
    const body = { name: "narrow", role: "owner" as const, scopes: ["members:write" as const] };
    const { token } = await owner.client()(createToken, { body });
    const invite = (role: "owner" | "member") =>
      api.as(token)(inviteMember, { body: { email: `x-${count}@example.com`, role } });
    expect(await codeOf(invite("owner"))).toBe("forbidden");
    expect(await codeOf(invite("member"))).toBe("forbidden");
  });
});

describe("a token", () => {
  it("SEC-01 ends for good when its maker loses the role it needs; one that needs less stays", async () => {
    const admin = await addMember(api, org, `admin@team-${count}.example`, "admin");
    const make = (role: "admin" | "member") => admin.client()(createToken, { body: { name: role, role } });
    const [high, low] = [await make("admin"), await make("member")];
    expect(await codeOf(api.as(high.token)(createProject, { body: { slug: "first", name: "f" } }))).toBe(
      "no error",
    );
    const params = { user_id: idOf(admin) };
    const { ended } = await owner.client()(updateMember, { params, body: { role: "member" } });
    expect(ended).toMatchObject([{ kind: "api_token", id: high.id, name: "admin" }]);
    expect(await codeOf(api.as(high.token)(getMe, {}))).toBe("unauthenticated");
    expect(await codeOf(api.as(low.token)(listProjects, {}))).toBe("no error");
    await owner.client()(updateMember, { params, body: { role: "admin" } });
    expect(await codeOf(api.as(high.token)(getMe, {})), "promoted again").toBe("unauthenticated");
  });

  it("SEC-01 made in the moment its maker was removed is worth nothing", async () => {
    const admin = await addMember(api, org, `admin@team-${count}.example`, "admin");
    const { token, id } = await admin.client()(createToken, { body: { name: "late", role: "admin" } });
    await owner.client()(removeMember, { params: { user_id: idOf(admin) } });
    const { superuser } = openRoles(api.database);
    await superuser`UPDATE api_tokens SET revoked_at = NULL WHERE id = ${id}`;
    expect(await codeOf(api.as(token)(getMe, {}))).toBe("unauthenticated");
  });

  it("SEC-03 takes those made with it along when it is revoked", async () => {
    const make = async (by: string) => api.as(by)(createToken, { body: { name: "child", role: "admin" } });
    const first = await owner.client()(createToken, { body: { name: "first", role: "admin" } });
    const second = await make(first.token);
    const third = await make(second.token);
    const stranger = await owner.client()(createToken, { body: { name: "stranger", role: "admin" } });
    await owner.client()(revokeToken, { params: { token_id: first.id } });
    const codes = [first, second, third, stranger].map(({ token }) => codeOf(api.as(token)(getMe, {})));
    expect(await Promise.all(codes)).toEqual([
      "unauthenticated",
      "unauthenticated",
      "unauthenticated",
      "no error",
    ]);
  });

  it("SEC-03 limits the lifetime of those made with it to its own", async () => {
    const first = await owner.client()(createToken, {
      body: { name: "first", role: "admin", expires_in_days: 1 },
    });
    const endless = await api.as(first.token)(createToken, { body: { name: "endless" } });
    const longer = await api.as(first.token)(createToken, { body: { name: "longer", expires_in_days: 300 } });
    expect([endless.expires_at, longer.expires_at]).toEqual([first.expires_at, first.expires_at]);
  });

  it("SEC-01 of an owner cannot be revoked by an admin", async () => {
    const admin = await addMember(api, org, `admin@team-${count}.example`, "admin");
    const theirs = await owner.client()(createToken, { body: { name: "owner's", role: "owner" } });
    const revoke = admin.client()(revokeToken, { params: { token_id: theirs.id } });
    expect(await codeOf(revoke)).toBe("forbidden");
  });
});

describe("members changed by several people at once", () => {
  it("SEC-01 leaves an owner, whatever comes first", async () => {
    for (let round = 0; round < 8; round += 1) {
      const place = await createOrg(api, `race-${round}`);
      const first = await addMember(api, place, `first@race-${round}.example`, "owner");
      const other = await addMember(api, place, `other@race-${round}.example`, "admin");
      const operator = api.operator(place.id);
      const [a, b] = [{ user_id: idOf(first) }, { user_id: idOf(other) }];
      const codes = await Promise.all([
        codeOf(operator(removeMember, { params: b })),
        codeOf(operator(updateMember, { params: b, body: { role: "owner" } })),
        codeOf(operator(updateMember, { params: a, body: { role: "member" } })),
        codeOf(operator(removeMember, { params: a })),
      ]);
      expect(codes.filter((code) => !["no error", "last_owner", "not_found"].includes(code))).toEqual([]);
      const { items } = await operator(listMembers, {});
      expect(
        items.some((member) => member.role === "owner"),
        JSON.stringify(items),
      ).toBe(true);
    }
  });
});

describe("an operator", () => {
  it("SEC-03 makes a link for a member who lost the password", async () => {
    const email = `owner@team-${count}.example`;
    const link = await api.operator()(createAdminLink, { body: { email } });
    expect(link.email).toBe(email);
    const again = await redeem(api, link.url, { password: "another long password" });
    expect(again.me).toMatchObject({ email, operator: false });
    expect(await codeOf(owner.client()(getMe, {}))).toBe("unauthenticated");
    const unknown = api.operator()(createAdminLink, { body: { email: "nobody@example.com" } });
    expect(await codeOf(unknown)).toBe("not_found");
  });

  it("SEC-03 may ask for links many times at once", async () => {
    const make = () => api.operator()(createAdminLink, { body: { email: `owner@team-${count}.example` } });
    const codes = await Promise.all(Array.from({ length: 6 }, () => codeOf(make())));
    expect(new Set(codes)).toEqual(new Set(["no error"]));
  });

  it("AUDIT-01 sees in an organization's trail who was removed with how many tokens", async () => {
    const leaver = await addMember(api, org, `leaver@team-${count}.example`, "member");
    await leaver.client()(createToken, { body: { name: "one" } });
    await owner.client()(removeMember, { params: { user_id: idOf(leaver) } });
    const { items } = await owner.client()(listAudit, { query: { action: "member.remove" } });
    expect(items).toMatchObject([{ target_name: `leaver@team-${count}.example`, details: { tokens_ended: 1 } }]);
  });
});
