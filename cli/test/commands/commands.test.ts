// Commands against a real api: what they print for people, for scripts, and how they end.

import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { addMember, createOrg, startTestApi, type TestApi, tokenFor } from "../../../testkit/api/api.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { aPerson, type Person } from "../support/command.ts";

type Listed<T> = { items: T[]; next_cursor?: string | null };
type Token = {
  id: string;
  name: string;
  role: string;
  scopes: string[] | null;
  token: string;
  revoked_at: string;
};
type Event = {
  id: string;
  action: string;
  result: string;
  actor_name: string;
  correlation_id: string;
  at: string;
};

let api: TestApi;
let operator: Person;
let owner: Person;
let member: Person;

beforeAll(async () => {
  api = await startTestApi();
  const kelp = await createOrg(api, "kelp");
  await createOrg(api, "several");
  await addMember(api, kelp, "olive@kelp.example", "owner");
  const withToken = (token: string) => aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
  operator = withToken(api.operatorToken);
  owner = withToken(await tokenFor(api, kelp, "owner"));
  member = withToken(await tokenFor(api, kelp, "member"));
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not reach a terminal
const control = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

describe("holdfast token", () => {
  it("SEC-03 makes a token that works, lists it, and revokes it at once", async () => {
    const scopes = ["--scope", "projects:read", "org:read"];
    const made = await owner.json<Token>(["token", "create", "--name", "ci", "--role", "admin", ...scopes]);
    expect(made).toMatchObject({ name: "ci", role: "admin", scopes: ["projects:read", "org:read"] });
    const me = () => fetch(`${api.url}/v1/me`, { headers: { authorization: `Bearer ${made.token}` } });
    expect((await me()).status).toBe(200);
    const { items } = await owner.json<Listed<Token>>(["token", "list"]);
    expect(items.find(({ id }) => id === made.id)).not.toHaveProperty("token");
    expect(await owner.json(["token", "revoke", made.id])).toMatchObject({ id: made.id, revoked: true });
    expect((await me()).status).toBe(401);
    const after = await owner.json<Listed<Token>>(["token", "list"]);
    expect(after.items.find(({ id }) => id === made.id)?.revoked_at).toMatch(/^\d{4}-/);
  });

  it("SEC-03 shows a token to people once, with a word about it, and its state in the list", async () => {
    const made = await owner.holdfast(["token", "create", "--name", "laptop", "--expires", "7"]);
    expect(made.code).toBe(0);
    const [token, advice] = made.stdout.split("\n");
    expect(token).toMatch(/^hft_\S{43}$/);
    expect(advice).toContain("not shown again");
    const { stdout } = await owner.holdfast(["token", "list"]);
    expect(stdout).toMatch(/^ID\s+NAME\s+ROLE\s+CREATED BY\s+LAST USED\s+STATE\n/);
    expect(stdout).toMatch(/laptop\s+member\s+.*never\s+valid until \d{4}-/);
    expect(stdout).not.toContain("hft_");
  });

  it("SEC-01 is refused beyond one's own role", async () => {
    const refused = await member.holdfast(["token", "create", "--name", "x", "--role", "owner"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("code forbidden");
  });
});

describe("holdfast org", () => {
  it("SEC-01 creates and lists organizations, and renames one", async () => {
    const created = await operator.json(["org", "create", "reef", "--name", "The Reef"]);
    expect(created).toMatchObject({ slug: "reef", name: "The Reef" });
    const renamed = await operator.json(["org", "rename", "Reef & Sons", "--org", "reef"]);
    expect(renamed).toMatchObject({ id: created["id"], slug: "reef", name: "Reef & Sons" });
    const { items } = await operator.json<Listed<{ slug: string; name: string }>>(["org", "list"]);
    expect(items.find(({ slug }) => slug === "reef")?.name).toBe("Reef & Sons");
    const { stdout } = await operator.holdfast(["org", "list"]);
    expect(stdout).toMatch(/^SLUG\s+NAME\s+ID\s+CREATED\n/);
    expect(stdout).toMatch(/reef\s+Reef & Sons\s+/);
  });

  it("SEC-01 shows an owner their own organization only, and acts in it without being told", async () => {
    const { items } = await owner.json<Listed<{ slug: string }>>(["org", "list"]);
    expect(items.map(({ slug }) => slug)).toEqual(["kelp"]);
    expect(await owner.json(["org", "rename", "Kelp"])).toMatchObject({ slug: "kelp", name: "Kelp" });
    const unset = await owner.holdfast(["org", "rename", "Kelp again"], { env: { HOLDFAST_ORG: "" } });
    expect(unset, "an empty setting is an unset one").toMatchObject({ code: 0, stderr: "" });
  });

  it("SEC-01 asks which organization, if there are several, and takes it from option or setting", async () => {
    const members = ["org", "members"];
    const kelp = { HOLDFAST_ORG: "kelp" };
    const [unclear, none, bySetting, optionWins] = await Promise.all([
      operator.holdfast(members),
      operator.holdfast([...members, "--org", "nowhere"]),
      operator.holdfast(members, { env: kelp }),
      operator.holdfast([...members, "--org", "several"], { env: kelp }),
    ]);
    expect(unclear.code).toBe(2);
    expect(unclear.stderr).toMatch(/--org.*kelp/);
    expect(none.code).toBe(2);
    expect(none.stderr).toContain('Organization "nowhere" not found');
    expect(bySetting.stdout).toContain("olive@kelp.example");
    expect(optionWins).toMatchObject({ code: 0 });
    expect(optionWins.stdout).not.toContain("olive");
  });

  it("SEC-01 invites by a link and lists the members", async () => {
    const invited = await owner.json(["org", "invite", "New@Kelp.Example", "--role", "admin"]);
    expect(invited).toMatchObject({ email: "new@kelp.example", role: "admin" });
    expect(invited["url"]).toMatch(/#hfl_/);
    const forPeople = await owner.holdfast(["org", "invite", "second@kelp.example"]);
    expect(forPeople.stdout).toMatch(
      /^http\S+#hfl_\S+\nSend this link to second@kelp.example. It works once and expires /,
    );
    const { items } = await owner.json<Listed<{ email: string; role: string }>>(["org", "members"]);
    expect(items).toMatchObject([{ email: "olive@kelp.example", role: "owner" }]);
    const { stdout } = await owner.holdfast(["org", "members"]);
    expect(stdout).toMatch(/^EMAIL\s+NAME\s+ROLE\s+SINCE\nolive@kelp\.example\s+olive\s+owner\s+/);
  });
});

describe("holdfast audit list", () => {
  const list = (...args: string[]) => owner.json<Listed<Event>>(["audit", "list", ...args]);

  it("AUDIT-01 shows who did what, and finds it again by every filter", async () => {
    const { token } = await owner.json<Token>(["token", "create", "--name", "to be found"]);
    const [made] = (await list("--action", "token.create", "--target", "to be found")).items;
    expect(made).toMatchObject({ action: "token.create", result: "allowed", target_name: "to be found" });
    expect(JSON.stringify(made)).not.toContain(token);
    const { id = "", correlation_id = "", actor_name = "" } = made ?? {};
    const finds = async (ids: string[], ...args: string[]) => {
      const { items } = await list(...args);
      expect(
        items.map((event) => event.id),
        args.join(" "),
      ).toEqual(ids);
    };
    const named = ["--target", "to be found"];
    await Promise.all([
      finds([id], "--correlation", correlation_id),
      finds([id], ...named, "--actor", actor_name, "--since", "1h", "--action", "token."),
      finds([], ...named, "--until", "1h"),
      finds([], ...named, "--since", "2100-01-01T00:00:00Z"),
      finds([], ...named, "--action", "organization."),
    ]);
  });

  it("AUDIT-01 shows what was denied, with its reason, under the correlation id that the person saw", async () => {
    const refused = await member.holdfast(["org", "rename", "Mine now"]);
    const correlation = /correlation id (\S+)/.exec(refused.stderr)?.[1] ?? "";
    const { items } = await list("--result", "denied", "--correlation", correlation);
    expect(items).toMatchObject([{ action: "organization.update", result: "denied", reason: "forbidden" }]);
    const { stdout } = await owner.holdfast(["audit", "list", "--correlation", correlation]);
    expect(stdout).toMatch(/^TIME\s+ACTOR\s+ACTION\s+TARGET\s+RESULT\s+CORRELATION ID\n/);
    expect(stdout).toMatch(/organization\.update\s+.*denied forbidden\s+/);
  });

  it("AUDIT-01 goes page by page", async () => {
    await Promise.all(["a", "b"].map((name) => owner.json(["token", "create", "--name", name])));
    const first = await list("--limit", "1");
    const second = await list("--limit", "1", "--cursor", first.next_cursor ?? "");
    expect([first.items.length, second.items.length]).toEqual([1, 1]);
    expect((second.items[0]?.id ?? "") < (first.items[0]?.id ?? "")).toBe(true);
    const { stdout } = await owner.holdfast(["audit", "list", "--limit", "1"]);
    expect(stdout).toMatch(/\nShowing \d+; there are more\. For the next page, add --cursor \S+\n$/);
  });

  it("AUDIT-01 says when nothing matches", async () => {
    const nothing = await owner.holdfast(["audit", "list", "--action", "never.happened"]);
    expect(nothing).toMatchObject({ code: 0, stdout: "No event matches.\n" });
  });
});

describe("a refusal", () => {
  it("tells people what happened, what to do now, the code and the correlation id", async () => {
    const { code, stdout, stderr } = await member.holdfast(["audit", "list"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const [message, needed, role, nextStep, codes] = stderr.split("\n");
    expect(message).toMatch(/^error: \S.*\.$/);
    expect([needed, role]).toEqual(["  needed: audit:read", "  role: member"]);
    expect(nextStep).toMatch(/^ {2}Ask an owner/);
    expect(codes).toMatch(/^ {2}code forbidden · correlation id [0-9a-f-]{36}$/);
  });

  it("names the wrong fields", async () => {
    const { code, stderr } = await operator.holdfast(["org", "create", "No Slug"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/\n {2}(body\.)?slug: \S/);
  });

  it("gives scripts the envelope as one JSON value on stderr", async () => {
    const { code, stdout, stderr } = await owner.holdfast(["token", "revoke", crypto.randomUUID(), "--json"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "not_found", retryable: false, details: {} } });
  });

  it("SEC-03 says that a token is wrong without showing it", async () => {
    const wrong = `hft_${"x".repeat(43)}`;
    const { code, stderr } = await owner.holdfast(["token", "list"], { env: { HOLDFAST_TOKEN: wrong } });
    expect(code).toBe(1);
    expect(stderr).toContain("code unauthenticated");
    expect(stderr).not.toContain(wrong);
  });
});

describe("names that try to steer the terminal", () => {
  const hostile = "evil\u001b]0;owned\u0007\u001b[2J\u009b1mname\r\u2028";

  it("SEC-03 are refused, and not repeated to it", async () => {
    const refused = await owner.holdfast(["org", "rename", hostile]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).not.toMatch(control);
  });

  // The server refuses such names today; other servers, and older rows, may hold them.
  it("SEC-03 are made harmless in tables and sentences, and kept in JSON", async () => {
    const { id } = await owner.json<Token>(["token", "create", "--name", "harmless"]);
    const { superuser } = openRoles(api.database);
    await superuser`UPDATE api_tokens SET name = ${hostile} WHERE id = ${id}`;
    await superuser`UPDATE audit_events SET target_name = ${hostile} WHERE target_id = ${id}`;
    await superuser`UPDATE organizations SET name = ${hostile} WHERE slug = 'kelp'`;
    const shown = await Promise.all([
      owner.holdfast(["token", "list"]),
      owner.holdfast(["org", "list"]),
      owner.holdfast(["audit", "list", "--target", "evil"]),
    ]);
    for (const { stdout, code } of shown) {
      expect(code).toBe(0);
      expect(stdout).toContain("evil");
      expect(stdout).not.toMatch(control);
    }
    const { items } = await owner.json<Listed<Token>>(["token", "list"]);
    expect(items.map(({ name }) => name)).toContain(hostile);
    const raw = await owner.holdfast(["token", "list", "--json"]);
    expect(raw.stdout, "JSON escapes them").not.toMatch(control);
  });
});

describe("holdfast key", () => {
  type Key = { kid: string; state: string; signs_from: string; verifies_until: string | null };

  it("TASK-03 shows the key that signs tasks, makes the next one, and shows both", async () => {
    const { items } = await operator.json<Listed<Key>>(["key", "list"]);
    expect(items).toMatchObject([{ state: "signing", verifies_until: null }]);
    const rotated = await operator.holdfast(["key", "rotate", "task-signing"]);
    expect(rotated).toMatchObject({ code: 0, stderr: "" });
    const after = await operator.json<Listed<Key>>(["key", "list"]);
    const [next, present] = after.items;
    expect([next?.state, present?.state, present?.kid]).toEqual(["next", "signing", items[0]?.kid]);
    expect(rotated.stdout).toContain(`Created key ${next?.kid}.`);
    expect(rotated.stdout).toContain(`Until then ${present?.kid} signs`);
    const { stdout } = await operator.holdfast(["key", "list"]);
    expect(stdout).toMatch(/^KID\s+FOR\s+STATE\s+SIGNS FROM\s+VERIFIES UNTIL\n/);
    expect(stdout).toMatch(new RegExp(`${next?.kid}\\s+task-signing\\s+○ next\\s+\\d{4}-.*until replaced`));
  });

  it("TASK-03 refuses a second rotation at once, and says from when on", async () => {
    const refused = await operator.holdfast(["key", "rotate", "task-signing"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("code key_rotation_too_soon");
    expect(refused.stderr).toMatch(/not before: \d{4}-/);
  });

  it("SEC-01 is for the platform's operator, and names the keys there are", async () => {
    const refused = await owner.holdfast(["key", "list"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("Only the platform operator");
    const unknown = await operator.holdfast(["key", "rotate", "kek"]);
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.stderr).toContain("Allowed choices are task-signing");
  });
});

describe("the token of a command", () => {
  it("SEC-03 appears in no log of the server", () => {
    expect(api.logged()).toContain("/v1/tokens");
    expect(api.logged()).not.toMatch(/hf[a-z]_[A-Za-z0-9_-]{16}/);
  });

  it("SEC-03 is written nowhere", () => {
    expect(() => readFileSync(owner.credentials)).toThrow(/ENOENT/);
  });
});
