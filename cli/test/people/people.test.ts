// Members, sessions and what ends with them, on the command line against a real api.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  PASSWORD,
  signInAs,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../../testkit/api/api.ts";
import { aPerson, type Person } from "../support/command.ts";

let api: TestApi;
let org: TestOrg;
let owner: Person;
let email: string;
let admin: Browser;
let count = 0;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "kelp");
  owner = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: await tokenFor(api, org, "owner") });
});

beforeEach(async () => {
  count += 1;
  email = `leaver-${count}@kelp.example`;
  admin = await addMember(api, org, email, "admin");
});

/** One of each kind, by the admin. */
async function issueAll(): Promise<string> {
  const client = admin.client();
  const { token } = await client(createToken, { body: { name: "laptop", role: "admin" } });
  await client(createEnrollmentToken, { body: {} });
  await client(createEnrollmentToken, { body: { kind: "bootstrap", node_name: `vm-${count}` } });
  await client(inviteMember, { body: { email: `guest-${count}@kelp.example` } });
  return token;
}

describe("holdfast org", () => {
  it("SEC-01 says what ends with a member before it asks, and does nothing unasked", async () => {
    await issueAll();
    const { code, stderr } = await owner.holdfast(["org", "remove-member", email]);
    expect(code).toBe(2);
    expect(stderr).toContain("1 API token, 1 pairing token, 1 bootstrap token and 1 invitation will end:");
    expect(stderr).toContain(`holdfast node token create --bootstrap --node vm-${count}`);
    expect(stderr).toContain("Use --yes.");
    expect((await owner.holdfast(["org", "members"])).stdout).toContain(email);
  });

  it("SEC-01 removes a member, with how many tokens of which kind ended", async () => {
    const token = await issueAll();
    const { code, stdout } = await owner.holdfast(["org", "remove-member", email, "--yes"]);
    expect([code, stdout.split("\n").slice(0, 2)]).toEqual([
      0,
      [
        `${email} is no longer a member.`,
        "Ended: 1 API token, 1 pairing token, 1 bootstrap token and 1 invitation.",
      ],
    ]);
    const me = await fetch(`${api.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
    expect(me.status).toBe(401);
    expect((await owner.holdfast(["org", "remove-member", email, "--yes"])).stderr).toContain("is not a member");
  });

  it("SEC-01 demotes a member, and ends only what needs the lost role", async () => {
    await issueAll();
    await admin.client()(createToken, { body: { name: "small", role: "member" } });
    const changed = await owner.json<{ role: string; ended: { name: string }[] }>([
      ...["org", "set-role", email, "member", "--yes"],
    ]);
    expect(changed.role).toBe("member");
    expect(changed.ended.map(({ name }) => name)).toEqual([
      "laptop",
      null,
      `vm-${count}`,
      `guest-${count}@kelp.example`,
    ]);
  });
});

describe("holdfast session", () => {
  const signIn = async () => {
    const person = aPerson();
    const args = ["login", "--api", api.url, "--email", email, "--password-stdin"];
    expect((await person.holdfast(args, { input: PASSWORD })).code).toBe(0);
    return person;
  };
  type Listed = { items: { id: string; user_agent: string }[] };

  it("SEC-03 lists the browsers that are signed in, and ends one", async () => {
    const person = await signIn();
    const stolen = await signInAs(api, email);
    const { items } = await person.json<Listed>(["session", "list"]);
    expect(items).toHaveLength(2);
    const { stdout } = await person.holdfast(["session", "list"]);
    expect(stdout).toMatch(/ID +BROWSER +SIGNED IN +FROM +LAST SEEN +TERMINALS\n/);
    expect(stdout).toContain("from 127.0.0.1");
    const newest = items[0]?.id ?? "";
    expect((await person.holdfast(["session", "end", newest])).stdout).toContain(`Session ${newest} ended.`);
    const statuses = await Promise.all(
      [stolen, admin].map(async ({ cookie }) => (await fetch(`${api.url}/v1/me`, { headers: { cookie } })).status),
    );
    expect(statuses).toEqual([401, 200]);
    expect((await person.holdfast(["session", "end", newest])).code).not.toBe(0);
  });

  it("SEC-03 signs out everywhere, and asks about the tokens unless told", async () => {
    const person = await signIn();
    const asked = await person.holdfast(["session", "end", "--all"]);
    expect(asked.stderr).toContain("You created 1 API token:");
    expect(asked.stderr).toContain("Use --revoke-tokens or --no-revoke-tokens.");
    expect((await fetch(`${api.url}/v1/me`, { headers: { cookie: admin.cookie } })).status).toBe(200);
    const kept = await person.json(["session", "end", "--all", "--no-revoke-tokens"]);
    expect(kept).toEqual({ sessions: 1, terminals: 0, tokens: [] });
    expect((await fetch(`${api.url}/v1/me`, { headers: { cookie: admin.cookie } })).status).toBe(401);
    const { stdout } = await person.holdfast(["session", "end", "--all", "--revoke-tokens"]);
    expect(stdout).toContain("Ended: 1 API token.");
    expect(stdout).toContain("holdfast login");
    expect((await person.holdfast(["session", "list"])).code).not.toBe(0);
  });

  it("SEC-03 wants one session or all of them, and a person", async () => {
    expect((await owner.holdfast(["session", "end"])).stderr).toContain("Name the session to end, or use --all.");
    expect((await owner.holdfast(["session", "list"])).stderr).toContain("Only a person has sessions");
  });
});
