// Where a person is signed in: seen, ended one by one or all at once, and what closes and ends with it. The gateway is
// played by the test, over the real listener.

import { CallError, type Client } from "@holdfast/contracts/client";
import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changePassword, getMe } from "@holdfast/contracts/endpoints/me";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import {
  endSession,
  listMyTokens,
  listSessions,
  type Session,
  signOutEverywhere,
} from "@holdfast/contracts/endpoints/sessions";
import { signOut } from "@holdfast/contracts/endpoints/sign-in";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { claimTerminalToken } from "@holdfast/contracts/internal/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  PASSWORD,
  redeem,
  signInAs,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { enrollGateway, type Following, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { newPlace, type Place } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { removeExpired } from "../src/platform/remove-expired.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;
let org: TestOrg;
let gateway: TestGateway;
let news: Following;
let place: Place;
let email: string;
let person: Browser;
let count = 0;

const NEW_PASSWORD = "an entirely different one";

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser, system } = openRoles(api.database));
  org = await createOrg(api, "kelp");
  gateway = await enrollGateway(api);
  news = await gateway.follow();
  place = await newPlace(api, superuser, org);
});

beforeEach(async () => {
  count += 1;
  email = `person-${count}@example.com`;
  person = await addMember(api, org, email, "admin");
  await gateway.announce();
});

const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "no error",
    (error) => (error instanceof CallError ? error.envelope.code : String(error)),
  );

const mint = (as: Client, session_id?: string) =>
  as(createTerminalToken, {
    params: { allocation_id: place.allocationId },
    body: session_id ? { session_id } : {},
  });
const claim = async (token: string) => (await gateway.ask(claimTerminalToken, { body: { token } })).status;

async function openShell(as: Client, attachTo?: string): Promise<string> {
  const { token, session_id } = await mint(as, attachTo);
  expect(await claim(token)).toBe(200);
  await superuser`UPDATE terminal_sessions SET state = 'open' WHERE id = ${session_id}`;
  return session_id;
}

/** The gateway is told; the row alone would not close a shell. */
const isClosed = (sessionId: string) =>
  news.next((line) => line.type === "close_terminal" && line.session_id === sessionId);
const isAsked = async (sessionId: string) =>
  (await superuser`SELECT close_code FROM terminal_sessions WHERE id = ${sessionId}`)[0]?.["close_code"] !== null;

const ownSessions = async (browser: Browser) => (await browser.client()(listSessions, {})).items;

describe("the sessions of a person", () => {
  it("SEC-03 are listed with time, address and browser, and the current one is marked", async () => {
    const behindProxy = await startTestApi({ env: { HOLDFAST_TRUSTED_PROXIES: "127.0.0.1" } });
    const reef = await createOrg(behindProxy, "reef");
    await addMember(behindProxy, reef, "far@example.com", "member");
    const ask = (path: string, from: string, init: RequestInit = {}) =>
      fetch(`${behindProxy.url}${path}`, {
        ...init,
        headers: {
          ...{ "content-type": "application/json", "x-forwarded-for": from, "user-agent": "Firefox/147" },
          ...(init.headers as Record<string, string>),
        },
      });
    const signedIn = await ask("/v1/sign-in", "192.0.2.7", {
      method: "POST",
      body: JSON.stringify({ email: "far@example.com", password: PASSWORD }),
    });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const list = async () => {
      const response = await ask("/v1/me/sessions", "198.51.100.9", { headers: { cookie } });
      return ((await response.json()) as { items: Session[] }).items;
    };
    expect(await list()).toHaveLength(2);
    const seen = { address: "192.0.2.7", last_address: "198.51.100.9", user_agent: "Firefox/147" };
    await expect
      .poll(async () => (await list()).find(({ current }) => current))
      .toMatchObject({ ...seen, terminals: 0 });
  });

  it("SEC-03 are the person's own: another's is like one that never was", async () => {
    const other = await addMember(api, org, `other-${count}@example.com`, "member");
    const [theirs] = await ownSessions(other);
    const end = (id: string) => codeOf(person.client()(endSession, { params: { session_id: id } }));
    expect(await end(theirs?.id ?? "")).toBe("not_found");
    expect(await end(uuidv7())).toBe("not_found");
    expect(await codeOf(other.client()(getMe, {}))).toBe("no error");
  });

  it("SEC-03 are seen with an API token of the person, but not with a narrowed one or as the local operator", async () => {
    const make = (scopes?: ["nodes:read"]) =>
      person.client()(createToken, { body: { name: "cli", role: "admin", ...(scopes ? { scopes } : {}) } });
    const [whole, narrow] = [api.as((await make()).token), api.as((await make(["nodes:read"])).token)];
    const { items } = await whole(listSessions, {});
    expect(items.map(({ current }) => current)).toEqual([false]);
    expect(await codeOf(narrow(listSessions, {}))).toBe("forbidden");
    expect(await codeOf(narrow(signOutEverywhere, { body: {} }))).toBe("forbidden");
    expect(await codeOf(api.operator()(listSessions, {}))).toBe("forbidden");
    await whole(endSession, { params: { session_id: items[0]?.id ?? "" } });
    expect(await codeOf(person.client()(getMe, {}))).toBe("unauthenticated");
  });
});

describe("a session that is ended", () => {
  it("SEC-03 is refused from the next request on, closes the terminals it opened and no other's", async () => {
    const stolen = await signInAs(api, email);
    const theirs = await openShell(stolen.client());
    const own = await openShell(person.client());
    const listed = (await ownSessions(person)).find(({ current }) => !current);
    expect(listed).toMatchObject({ terminals: 1 });
    await person.client()(endSession, { params: { session_id: listed?.id ?? "" } });
    expect(await codeOf(stolen.client()(getMe, {}))).toBe("unauthenticated");
    expect(await isClosed(theirs)).toMatchObject({ code: "terminal_signed_out" });
    expect(await isAsked(own)).toBe(false);
    expect(await ownSessions(person)).toMatchObject([{ current: true, terminals: 1 }]);
    const { items } = await api.operator()(listPlatformAudit, { query: { action: "session.revoke" } });
    expect(items[0]).toMatchObject({ actor_name: email, target_id: listed?.id, result: "allowed" });
  });

  it("TERM-02 leaves no terminal token behind that works, for a new shell or one that is there", async () => {
    const stolen = await signInAs(api, email);
    const own = await openShell(person.client());
    const tokens = [(await mint(stolen.client())).token, (await mint(stolen.client(), own)).token];
    await stolen.client()(signOut, {});
    for (const token of tokens) expect(await claim(token)).not.toBe(200);
    expect(await isAsked(own)).toBe(false);
  });

  it("TERM-10 closes a shell that it attached to last, whoever opened it", async () => {
    const second = await signInAs(api, email);
    const shell = await openShell(person.client());
    await openShell(second.client(), shell);
    await person.client()(signOut, {});
    expect(await codeOf(second.client()(getMe, {}))).toBe("no error");
    expect(await isAsked(shell)).toBe(false);
    await second.client()(signOut, {});
    await isClosed(shell);
  });

  it("TERM-10 is not one that expired: its shell stays for its own time", async () => {
    const shell = await openShell(person.client());
    const ended = await openShell((await signInAs(api, email)).client());
    await superuser`
      UPDATE sessions SET last_seen_at = now() - interval '25 hours' WHERE user_id = ${person.me.id}
        AND id = (SELECT sign_in_id FROM terminal_sessions WHERE id = ${shell})`;
    await superuser`
      UPDATE sessions SET ended_at = now()
      WHERE id = (SELECT sign_in_id FROM terminal_sessions WHERE id = ${ended})`;
    await removeExpired(system);
    await isClosed(ended);
    expect(await isAsked(shell)).toBe(false);
  });
});

describe("a one-time link of an operator", () => {
  const makeLink = (by: Client, whom: string) => by(createAdminLink, { body: { email: whom } });

  it("SEC-03 made with a stolen session ends with the operator's tokens, and with the operator", async () => {
    await superuser`UPDATE users SET operator = true WHERE id = ${person.me.id}`;
    const other = `victim-${count}@example.com`;
    await addMember(api, org, other, "member");
    const stolen = await signInAs(api, email);
    const first = await makeLink(stolen.client(), other);
    const { tokens } = await person.client()(signOutEverywhere, { body: { revoke_tokens: true } });
    expect(tokens).toMatchObject([{ kind: "admin_link", name: other }]);
    await expect(redeem(api, first.url, { password: NEW_PASSWORD })).rejects.toThrow(/link_unknown/);
    const second = await makeLink((await signInAs(api, email)).client(), other);
    await superuser`UPDATE users SET operator = false WHERE id = ${person.me.id}`;
    await expect(redeem(api, second.url, { password: NEW_PASSWORD })).rejects.toThrow(/link_unknown/);
  });

  it("SEC-03 to an account ends with a new password of that account", async () => {
    const { url } = await makeLink(api.operator(), email);
    await person.client()(changePassword, { body: { current_password: PASSWORD, new_password: NEW_PASSWORD } });
    await expect(redeem(api, url, { password: "set by somebody else" })).rejects.toThrow(/link_unknown/);
    expect((await signInAs(api, email, NEW_PASSWORD)).me.email).toBe(email);
  });
});

/** A shell by the session, another by an API token, and one of each kind of token. */
async function handOut(browser: Browser) {
  const client = browser.client(org.id);
  const apiToken = await client(createToken, { body: { name: "cli", role: "admin" } });
  await client(createEnrollmentToken, { body: {} });
  await client(createEnrollmentToken, { body: { kind: "bootstrap", node_name: `vm-${count}` } });
  await client(inviteMember, { body: { email: `guest-${count}@example.com` } });
  const shells = [await openShell(client), await openShell(api.as(apiToken.token))];
  return { apiToken: api.as(apiToken.token), shells };
}

const allKinds = ["api_token", "pairing_token", "bootstrap_token", "invitation"];

const ways = [
  {
    way: "a new password",
    act: (revoke_tokens?: boolean) =>
      person.client()(changePassword, {
        body: { current_password: PASSWORD, new_password: NEW_PASSWORD, revoke_tokens },
      }),
  },
  {
    way: "signing out everywhere",
    act: (revoke_tokens?: boolean) => person.client()(signOutEverywhere, { body: { revoke_tokens } }),
  },
  {
    way: "a link that resets the password",
    act: async (revoke_tokens?: boolean) => {
      const { url } = await api.operator()(createAdminLink, { body: { email } });
      const body = { password: NEW_PASSWORD, ...(revoke_tokens === undefined ? {} : { revoke_tokens }) };
      return redeem(api, url, body);
    },
  },
];

describe.for(ways)("$way", ({ act }) => {
  it("SEC-03 ends a stolen session and closes all shells of the person, but leaves tokens unless chosen", async () => {
    const stolen = await signInAs(api, email);
    const { apiToken, shells } = await handOut(stolen);
    await act();
    expect(await codeOf(stolen.client()(getMe, {}))).toBe("unauthenticated");
    for (const shell of shells) expect(await isClosed(shell)).toMatchObject({ code: "terminal_signed_out" });
    expect((await apiToken(listMyTokens, {})).items.map(({ kind }) => kind)).toEqual(allKinds);
  });

  it("SEC-03 revokes every token of the person if chosen, in all organizations", async () => {
    const elsewhere = await createOrg(api, `elsewhere-${count}`);
    const invitation = await api.operator(elsewhere.id)(inviteMember, { body: { email, role: "admin" } });
    await redeem(api, invitation.url);
    const far = await person.client(elsewhere.id)(createToken, { body: { name: "far", role: "admin" } });
    const { apiToken } = await handOut(person);
    await act(true);
    expect(await codeOf(apiToken(getMe, {}))).toBe("unauthenticated");
    expect(await codeOf(api.as(far.token)(getMe, {}))).toBe("unauthenticated");
    const [left] = await superuser`
      SELECT (SELECT count(*) FROM enrollment_tokens WHERE created_by = ${person.me.id} AND revoked_at IS NULL)
        + (SELECT count(*) FROM one_time_links WHERE created_by = ${person.me.id} AND replaced_at IS NULL) AS n`;
    expect(Number(left?.["n"])).toBe(0);
  });
});
