// Signing in, sessions, one-time links, members and tokens, as people and scripts meet them.

import { CallError } from "@holdfast/contracts/client";
import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { changePassword, getMe } from "@holdfast/contracts/endpoints/me";
import { inviteMember, listMembers, removeMember, updateMember } from "@holdfast/contracts/endpoints/members";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { createProject, listProjects } from "@holdfast/contracts/endpoints/projects";
import { inspectLink } from "@holdfast/contracts/endpoints/sign-in";
import { createToken, listTokens, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import type { ErrorEnvelope } from "@holdfast/contracts/errors";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  firstAdmin,
  PASSWORD,
  redeem,
  signInAs,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";

let api: TestApi;
let admin: Browser;

beforeAll(async () => {
  api = await startTestApi();
  admin = await firstAdmin(api);
});

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => "no error",
    (error) => (error instanceof CallError ? error.envelope.code : String(error)),
  );
}

async function rawPost(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(api.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const json = (response.status === 204 ? {} : await response.json()) as ErrorEnvelope;
  return { response, json };
}

describe("the first administrator", () => {
  it("SEC-03 becomes operator, owner of the first organization, and is signed in", () => {
    expect(admin.me).toMatchObject({ type: "user", email: "root@example.com", operator: true });
    expect(admin.me.organizations).toMatchObject([{ slug: "default", role: "owner" }]);
  });

  it("SEC-03 gets a cookie that scripts and other sites cannot use, named for this installation", async () => {
    const { response } = await rawPost("/v1/sign-in", { email: "root@example.com", password: PASSWORD });
    const cookie = response.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^hf_[0-9a-f]{8}_session=hfs_/);
    expect(cookie).toContain("HttpOnly");
    expect(cookie).toContain("SameSite=Lax");
  });

  it("SEC-03 uses a link once, even when two people try at the same moment", async () => {
    const fresh = await startTestApi();
    const link = await fresh.operator()(createAdminLink, { body: {} });
    const attempts = await Promise.allSettled(
      [1, 2, 3, 4].map((n) => redeem(fresh, link.url, { email: `admin${n}@example.com`, name: `Admin ${n}` })),
    );
    expect(attempts.filter((one) => one.status === "fulfilled")).toHaveLength(1);
    await expect(redeem(fresh, link.url, { email: "late@example.com", name: "Late" })).rejects.toThrow(
      /link_used/,
    );
  });

  it("SEC-03 tells used, expired and replaced links apart", async () => {
    const fresh = await startTestApi();
    const { superuser } = openRoles(fresh.database);
    const replaced = await fresh.operator()(createAdminLink, { body: {} });
    const expired = await fresh.operator()(createAdminLink, { body: {} });
    const inspect = (url: string) =>
      fresh.operator()(inspectLink, { body: { secret: new URL(url).hash.slice(1) } });
    expect((await inspect(expired.url)).purpose).toBe("first_admin");
    await superuser`UPDATE one_time_links SET expires_at = now() WHERE used_at IS NULL AND replaced_at IS NULL`;
    expect(await codeOf(inspect(replaced.url))).toBe("link_unknown");
    expect(await codeOf(inspect(expired.url))).toBe("link_expired");
    await expect(redeem(fresh, expired.url, { email: "a@b.example", name: "A" })).rejects.toThrow(/link_expired/);
  });

  it("SEC-03 keeps the link when the form was incomplete", async () => {
    const fresh = await startTestApi();
    const link = await fresh.operator()(createAdminLink, { body: {} });
    await expect(redeem(fresh, link.url, { email: "root@example.com" })).rejects.toThrow(/invalid_request/);
    await expect(
      redeem(fresh, link.url, { name: "Root", email: "r@e.example", password: "short" }),
    ).rejects.toThrow(/400/);
    expect((await redeem(fresh, link.url, { email: "root@example.com", name: "Root" })).me.operator).toBe(true);
  });

  it("SEC-03 can be let in again by a new link, which ends the old sessions", async () => {
    const fresh = await startTestApi();
    const first = await firstAdmin(fresh);
    const link = await fresh.operator()(createAdminLink, { body: {} });
    expect(link.email).toBe("root@example.com");
    const again = await redeem(fresh, link.url, { password: "a completely new one" });
    expect(again.me.email).toBe("root@example.com");
    expect(await codeOf(first.client()(getMe, {}))).toBe("unauthenticated");
    await expect(signInAs(fresh, "root@example.com")).rejects.toThrow(/sign_in_failed/);
    expect((await signInAs(fresh, "root@example.com", "a completely new one")).me.operator).toBe(true);
  });

  it("SEC-03 never puts the secret into path or query", async () => {
    const link = new URL((await api.operator()(createAdminLink, { body: {} })).url);
    expect(link.pathname).toBe("/link");
    expect(link.search).toBe("");
    expect(link.hash).toMatch(/^#hfl_/);
  });
});

describe("sign-in", () => {
  it("SEC-03 answers a wrong password and an unknown account alike", async () => {
    const wrong = await rawPost("/v1/sign-in", { email: "root@example.com", password: "wrong password" });
    const unknown = await rawPost("/v1/sign-in", { email: "nobody@example.com", password: "wrong password" });
    const { correlation_id: _a, ...first } = wrong.json;
    const { correlation_id: _b, ...second } = unknown.json;
    expect(wrong.response.status).toBe(401);
    expect(first).toEqual(second);
  });

  it("SEC-03 slows guessing down, for the account from that address only, and says how long", async () => {
    const fresh = await startTestApi();
    await firstAdmin(fresh);
    const guess = () =>
      fetch(`${fresh.url}/v1/sign-in`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email: "root@example.com", password: "guess guess guess" }),
      });
    const codes: number[] = [];
    for (let n = 0; n < 12; n += 1) codes.push((await guess()).status);
    expect(codes).toEqual([...Array(10).fill(401), 429, 429]);
    const limited = await guess();
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(((await limited.json()) as { code: string }).code).toBe("rate_limit_exceeded");
    await expect(signInAs(fresh, "root@example.com")).rejects.toThrow(/429/);
    await expect(signInAs(fresh, "other@example.com")).rejects.toThrow(/401/);
  });

  it("SEC-03 lets nobody lock an account out from one address", async () => {
    const behindProxy = await startTestApi({ env: { HOLDFAST_TRUSTED_PROXIES: "127.0.0.1" } });
    await firstAdmin(behindProxy);
    const attempt = async (password: string, from: string) =>
      (
        await fetch(`${behindProxy.url}/v1/sign-in`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-forwarded-for": from },
          body: JSON.stringify({ email: "root@example.com", password }),
        })
      ).status;
    for (const from of ["192.0.2.1", "192.0.2.2", "2001:db8::1"]) {
      const codes = await Promise.all(Array.from({ length: 55 }, () => attempt("wrong wrong wrong", from)));
      expect(codes.filter((code) => code === 401)).toHaveLength(10);
    }
    expect(await attempt("wrong wrong wrong", "2001:db8::ffff"), "the same /64").toBe(429);
    expect(await attempt(PASSWORD, "192.0.2.77")).toBe(200);
  });

  describe("while strangers guess from many addresses", () => {
    let guarded: TestApi;
    let cookie: string;
    const owner = { email: "root@example.com", network: "198.51.100.1" };
    const attempt = async (
      from: string,
      { password = "wrong wrong wrong", email = owner.email, cookie = "" } = {},
    ) =>
      fetch(`${guarded.url}/v1/sign-in`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": from, cookie },
        body: JSON.stringify({ email, password }),
      });
    const statusOf = async (...args: Parameters<typeof attempt>) => (await attempt(...args)).status;

    beforeAll(async () => {
      guarded = await startTestApi({ env: { HOLDFAST_TRUSTED_PROXIES: "127.0.0.1" } });
      await firstAdmin(guarded);
      const signedIn = await attempt(owner.network, { password: PASSWORD });
      const device = signedIn.headers.getSetCookie().find((one) => one.includes("_device="));
      cookie = device?.split(";")[0] ?? "";
      const strangers = Array.from({ length: 15 }, (_, index) => `203.0.113.${index + 1}`);
      const codes = await Promise.all(
        strangers.flatMap((from) => Array.from({ length: 8 }, () => statusOf(from))),
      );
      // Of a hundred an hour, the owner's first sign-in from there was one.
      expect(codes.filter((code) => code === 401)).toHaveLength(99);
      expect(codes.filter((code) => code === 429)).toHaveLength(21);
    });

    it("SEC-03 refuses strangers for an hour, also one who has the right password", async () => {
      const response = await attempt("203.0.113.77", { password: PASSWORD });
      expect(response.status).toBe(429);
      expect(Number(response.headers.get("retry-after"))).toBeLessThanOrEqual(3600);
    });

    it("SEC-03 lets the owner in from a network they have signed in from", async () => {
      expect(await statusOf(owner.network, { password: PASSWORD })).toBe(200);
    });

    it("SEC-03 lets the owner in from anywhere with a browser they have signed in with", async () => {
      expect(await statusOf("203.0.113.99", { password: PASSWORD, cookie })).toBe(200);
    });

    it("SEC-03 takes a device for its own account only", async () => {
      const org = await createOrg(guarded, "guarded");
      await addMember(guarded, org, "victim@example.com", "member");
      const from = Array.from({ length: 11 }, (_, index) => `192.0.2.${index + 1}`);
      for (const address of from) {
        await Promise.all(
          Array.from({ length: 10 }, () => statusOf(address, { email: "victim@example.com", cookie })),
        );
      }
      const victim = { email: "victim@example.com", password: PASSWORD, cookie };
      expect(await statusOf("192.0.2.200", victim)).toBe(429);
    });

    it("SEC-03 bounds what somebody guesses who has a copy of the device cookie", async () => {
      const codes: number[] = [];
      for (let n = 1; n <= 12; n += 1) codes.push(await statusOf(`192.0.2.${n}`, { cookie }));
      expect(codes).toEqual([...Array(10).fill(401), 429, 429]);
    });
  });

  it("SEC-03 ends a session on sign-out, after idleness and at its expiry", async () => {
    const { superuser } = openRoles(api.database);
    const out = await signInAs(api, "root@example.com");
    await rawPost("/v1/sign-out", {}, { cookie: out.cookie, origin: api.url });
    expect(await codeOf(out.client()(getMe, {}))).toBe("unauthenticated");
    for (const change of [{ last_seen_at: "25 hours" }, { expires_at: "1 second" }]) {
      const session = await signInAs(api, "root@example.com");
      const [column, age] = Object.entries(change)[0] ?? [];
      await superuser`
        UPDATE sessions SET ${superuser(column ?? "")} = now() - ${age ?? ""}::interval
        WHERE created_at = (SELECT max(created_at) FROM sessions)`;
      expect(await codeOf(session.client()(getMe, {})), column).toBe("unauthenticated");
    }
  });

  it("SEC-03 refuses writes by cookie from another origin, or from none", async () => {
    const body = { current_password: PASSWORD, new_password: "another long password" };
    const otherScheme = api.url.replace("http:", "https:");
    for (const origin of ["https://evil.example", "null", `${api.url}0`, otherScheme, undefined]) {
      const headers = { cookie: admin.cookie, ...(origin ? { origin } : {}) };
      const { response, json } = await rawPost("/v1/me/password", body, headers);
      expect(response.status, String(origin)).toBe(403);
      expect(json.code).toBe("origin_refused");
    }
  });

  it("SEC-03 accepts the public address as origin when a proxy has changed the Host", async () => {
    const env = { HOLDFAST_TRUSTED_PROXIES: "127.0.0.1", HOLDFAST_PUBLIC_URL: "https://fleet.example.com" };
    const behindProxy = await startTestApi({ env });
    await firstAdmin(behindProxy);
    const signIn = async (origin: string) =>
      (
        await fetch(`${behindProxy.url}/v1/sign-in`, {
          method: "POST",
          headers: { "content-type": "application/json", origin },
          body: JSON.stringify({ email: "root@example.com", password: PASSWORD }),
        })
      ).status;
    expect(await signIn("https://fleet.example.com")).toBe(200);
    expect(await signIn("https://other.example.com")).toBe(403);
  });

  it("SEC-03 refuses to be signed in by a foreign page", async () => {
    const attempt = { email: "root@example.com", password: PASSWORD };
    const { json } = await rawPost("/v1/sign-in", attempt, { origin: "https://evil.example" });
    expect(json.code).toBe("origin_refused");
  });

  it("SEC-03 changes a password only with the current one, and ends every session but a new one for this browser", async () => {
    const org = await createOrg(api, "pw-org");
    const here = await addMember(api, org, "pw@example.com", "member");
    const there = await signInAs(api, "pw@example.com");
    const change = (current: string) =>
      here.client()(changePassword, { body: { current_password: current, new_password: "brand new password" } });
    expect(await codeOf(change("not the current"))).toBe("sign_in_failed");
    const { response, json } = await rawPost(
      "/v1/me/password",
      { current_password: PASSWORD, new_password: "brand new password" },
      { cookie: here.cookie, origin: api.url },
    );
    expect(json).toEqual({ sessions: 2, terminals: 0, tokens: [] });
    expect(await codeOf(there.client()(getMe, {}))).toBe("unauthenticated");
    expect(await codeOf(here.client()(getMe, {})), "a copy of the old cookie").toBe("unauthenticated");
    const [renewed = ""] = response.headers.getSetCookie();
    const me = await fetch(`${api.url}/v1/me`, { headers: { cookie: renewed.split(";")[0] ?? "" } });
    expect(await me.json()).toMatchObject({ email: "pw@example.com" });
  });

  it("SEC-03 stores passwords as argon2id and no secret in clear", async () => {
    const { superuser } = openRoles(api.database);
    const [user] = await superuser`SELECT password_hash FROM users LIMIT 1`;
    expect(user?.["password_hash"]).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    const secret = admin.cookie.split("=")[1] ?? "";
    const [dump] = await superuser`SELECT string_agg(s::text, ' ') AS all FROM sessions s`;
    expect(dump?.["all"]).not.toContain(secret);
  });
});

describe("members", () => {
  let org: TestOrg;
  let owner: Browser;
  beforeAll(async () => {
    org = await createOrg(api, "team");
    owner = await addMember(api, org, "owner@team.example", "owner");
  });

  it("SEC-01 joins an invited person with the invited role", async () => {
    const joined = await addMember(api, org, "new@team.example", "admin");
    expect(joined.me.organizations).toMatchObject([{ slug: "team", role: "admin" }]);
    expect(joined.me.operator).toBe(false);
  });

  it("SEC-03 lets an existing account join only with its own password", async () => {
    const invitation = await owner.client()(inviteMember, { body: { email: "root@example.com", role: "member" } });
    await expect(redeem(api, invitation.url, { password: "chosen by somebody else" })).rejects.toThrow(
      /sign_in_failed/,
    );
    const joined = await redeem(api, invitation.url, { password: PASSWORD });
    expect(joined.me.organizations.find((one) => one.slug === "team")?.role).toBe("member");
    expect((await signInAs(api, "root@example.com")).me.operator).toBe(true);
  });

  it("SEC-03 tells whoever invites nothing about accounts elsewhere", async () => {
    const elsewhere = await createOrg(api, "elsewhere");
    await addMember(api, elsewhere, "known@example.com", "member");
    const manager = await addMember(api, org, "curious@team.example", "admin");
    const probe = async (email: string) => {
      const { url } = await manager.client()(inviteMember, { body: { email, role: "member" } });
      const secret = new URL(url).hash.slice(1);
      const answers = [
        (await rawPost("/v1/links/inspect", { secret })).json,
        (await rawPost("/v1/links/redeem", { secret, password: "some guessed password" })).json,
        (await rawPost("/v1/links/redeem", { secret, password: "short" })).json,
      ];
      const text = JSON.stringify(answers.map(({ correlation_id: _, ...rest }) => rest));
      return text.replaceAll(email, "<email>").replace(/"expires_at":"[^"]+"/, "");
    };
    const known = await probe("known@example.com");
    expect(known).toContain("sign_in_failed");
    expect(await probe("unknown@example.com")).toBe(known);
    // To create an account for somebody who has one is refused, and seen by the platform's operators.
    const { url } = await manager.client()(inviteMember, { body: { email: "known@example.com" } });
    await expect(redeem(api, url, { name: "Impostor" })).rejects.toThrow(/name_taken/);
    const { items } = await api.operator()(listPlatformAudit, { query: { action: "link.redeem" } });
    expect(items[0]).toMatchObject({ result: "failed", reason: "name_taken", target_name: "known@example.com" });
  });

  it("SEC-01 lets an admin neither make nor remove an owner", async () => {
    const manager = await addMember(api, org, "manager@team.example", "admin");
    const client = manager.client();
    const invite = (role: "owner" | "admin") =>
      client(inviteMember, { body: { email: `x-${role}@e.example`, role } });
    expect(await codeOf(invite("owner"))).toBe("forbidden");
    expect(await codeOf(invite("admin"))).toBe("no error");
    expect(await codeOf(client(removeMember, { params: { user_id: owner.me.id ?? "" } }))).toBe("forbidden");
  });

  it("SEC-01 keeps at least one owner, also when two leave at once", async () => {
    const pair = await createOrg(api, "pair");
    const a = await addMember(api, pair, "a@pair.example", "owner");
    const b = await addMember(api, pair, "b@pair.example", "owner");
    const codes = await Promise.all([
      codeOf(a.client()(removeMember, { params: { user_id: a.me.id ?? "" } })),
      codeOf(b.client()(updateMember, { params: { user_id: b.me.id ?? "" }, body: { role: "member" } })),
    ]);
    expect(codes.sort()).toEqual(["last_owner", "no error"]);
    const { items } = await api.operator(pair.id)(listMembers, {});
    expect(items.filter((member) => member.role === "owner")).toHaveLength(1);
  });

  it("SEC-01 lets a member read and not write", async () => {
    const member = await addMember(api, org, "member@team.example", "member");
    const client = member.client();
    expect((await client(listProjects, {})).items).toHaveLength(1);
    expect(await codeOf(client(createProject, { body: { slug: "no", name: "No" } }))).toBe("forbidden");
  });

  it("SEC-01 asks a person of several organizations which one they mean", async () => {
    const second = await createOrg(api, "second-home");
    const person = await addMember(api, org, "both@team.example", "member");
    const invitation = await api.operator(second.id)(inviteMember, { body: { email: "both@team.example" } });
    await redeem(api, invitation.url);
    expect(await codeOf(person.client()(listProjects, {}))).toBe("organization_required");
    expect((await person.client(second.id)(listProjects, {})).items).toHaveLength(1);
  });
});

describe("tokens", () => {
  let org: TestOrg;
  beforeAll(async () => {
    org = await createOrg(api, "tokens-inc");
  });

  it("SEC-03 shows a token once, stores its hash, and needs no organization header", async () => {
    const created = await api.operator(org.id)(createToken, { body: { name: "ci", role: "admin" } });
    const me = await api.as(created.token)(getMe, {});
    expect(me).toMatchObject({ type: "token", name: "ci", operator: false });
    const listed = JSON.stringify(await api.operator(org.id)(listTokens, {}));
    expect(listed).not.toContain(created.token);
    const { superuser } = openRoles(api.database);
    const [dump] = await superuser`SELECT string_agg(t::text, ' ') AS all FROM api_tokens t`;
    expect(dump?.["all"]).not.toContain(created.token);
  });

  it("SEC-03 refuses a revoked or expired token from the next request on, and knows its last use", async () => {
    const client = api.operator(org.id);
    const { superuser } = openRoles(api.database);
    const created = await client(createToken, { body: { name: "short", expires_in_days: 1 } });
    await api.as(created.token)(getMe, {});
    await expect
      .poll(async () => (await client(listTokens, {})).items.find((one) => one.id === created.id)?.last_used_at)
      .toBeTruthy();
    await superuser`UPDATE api_tokens SET expires_at = now() WHERE id = ${created.id}`;
    expect(await codeOf(api.as(created.token)(getMe, {}))).toBe("unauthenticated");
    await superuser`UPDATE api_tokens SET expires_at = NULL WHERE id = ${created.id}`;
    await client(revokeToken, { params: { token_id: created.id } });
    expect(await codeOf(api.as(created.token)(getMe, {}))).toBe("unauthenticated");
  });

  it("SEC-01 narrows a token to its scopes, and hands on no more than it has", async () => {
    const narrow = await api.operator(org.id)(createToken, {
      body: { name: "narrow", role: "admin", scopes: ["tokens:write", "projects:read"] },
    });
    const client = api.as(narrow.token);
    expect((await client(listProjects, {})).items).toHaveLength(1);
    expect(await codeOf(client(createProject, { body: { slug: "xx", name: "X" } }))).toBe("forbidden");
    const wider = client(createToken, { body: { name: "wider", role: "admin", scopes: ["projects:write"] } });
    expect(await codeOf(wider)).toBe("forbidden");
    const inherited = await client(createToken, { body: { name: "inherits", role: "admin" } });
    expect(inherited.scopes?.sort()).toEqual(["projects:read", "tokens:write"]);
  });

  it("SEC-01 lets nobody make a token above their own role", async () => {
    const member = await addMember(api, org, "m@tokens.example", "member");
    const make = (role: "member" | "admin") => member.client()(createToken, { body: { name: role, role } });
    expect(await codeOf(make("admin"))).toBe("forbidden");
    expect(await codeOf(make("member"))).toBe("no error");
  });

  it("SEC-01 shows a member only their own tokens", async () => {
    const one = await addMember(api, org, "one@tokens.example", "member");
    const two = await addMember(api, org, "two@tokens.example", "member");
    const mine = await one.client()(createToken, { body: { name: "mine" } });
    expect((await one.client()(listTokens, {})).items.map((token) => token.id)).toEqual([mine.id]);
    expect((await two.client()(listTokens, {})).items).toEqual([]);
    expect(await codeOf(two.client()(revokeToken, { params: { token_id: mine.id } }))).toBe("not_found");
  });

  it("SEC-01 ends a demoted member's tokens, and a removed member's", async () => {
    const leaver = await addMember(api, org, "leaver@tokens.example", "admin");
    const { token } = await leaver.client()(createToken, { body: { name: "leaver", role: "admin" } });
    const params = { user_id: leaver.me.id ?? "" };
    const operator = api.operator(org.id);
    await operator(updateMember, { params, body: { role: "member" } });
    expect(await codeOf(api.as(token)(createProject, { body: { slug: "yy", name: "Y" } }))).toBe(
      "unauthenticated",
    );
    const kept = await leaver.client()(createToken, { body: { name: "kept", role: "member" } });
    await operator(removeMember, { params });
    expect(await codeOf(api.as(kept.token)(getMe, {}))).toBe("unauthenticated");
    expect(await codeOf(leaver.client()(listProjects, {}))).toBe("organization_required");
  });

  it("SEC-03 accepts the local operator's token and nothing that resembles it", async () => {
    expect((await api.operator()(getMe, {})).type).toBe("local_operator");
    expect(await codeOf(api.as(`${api.operatorToken.slice(0, -1)}_`)(getMe, {}))).toBe("unauthenticated");
    expect(await codeOf(api.as(await tokenFor(api, org, "owner"))(createAdminLink, { body: {} }))).toBe(
      "forbidden",
    );
  });
});

describe("secrets", () => {
  it("AUDIT-03 logs none of the secrets that went through this file", async () => {
    const log = api.logged();
    expect(log.length).toBeGreaterThan(1000);
    expect(log).not.toMatch(/hf[a-z]_[A-Za-z0-9_-]{16,}/);
    expect(log).not.toContain(PASSWORD);
    expect(log).not.toContain("argon2id$");
  });
});
