// Signing in from the command line, and out again.

import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { addMember, createOrg, PASSWORD, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { aPerson, type Person } from "../support/command.ts";

let api: TestApi;
const email = "ada@kelp.example";
beforeAll(async () => {
  api = await startTestApi();
  await addMember(api, await createOrg(api, "kelp"), email, "admin");
  await createOrg(api, "reef");
});

const signIn = () => ["login", "--api", api.url, "--email", email, "--password-stdin"];
const statusOf = async (token: string) =>
  (await fetch(`${api.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status;

describe("holdfast login", () => {
  it("SEC-03 keeps a token in a file of its user's own, and logout revokes it", async () => {
    const ada = aPerson();
    const signedIn = await ada.json(signIn(), { input: `${PASSWORD}\n` });
    expect(signedIn).toMatchObject({ api_url: api.url, email, organization: "kelp", role: "admin" });
    expect(JSON.stringify(signedIn)).not.toContain("hft_");
    expect(api.logged(), "the session ends, only the token stays").toContain(
      '"route":"/v1/sign-out","status":204',
    );

    expect(statSync(ada.credentials).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(ada.credentials)).mode & 0o077).toBe(0);
    const saved = JSON.parse(readFileSync(ada.credentials, "utf8"));
    expect(saved.token).toMatch(/^hft_/);
    expect(await statusOf(saved.token)).toBe(200);

    const { items } = await ada.json<{ items: { id: string; name: string; expires_at: string }[] }>([
      "token",
      "list",
    ]);
    expect(items).toMatchObject([{ id: saved.token_id, name: expect.stringMatching(/^CLI on /) }]);
    expect(items[0]?.expires_at).toMatch(/^\d{4}-/);

    expect(await ada.json(["logout"])).toEqual({ signed_out: true, ended: [] });
    expect(await statusOf(saved.token)).toBe(401);
    expect(() => statSync(ada.credentials)).toThrow(/ENOENT/);
    expect(await ada.json(["logout"])).toEqual({ signed_out: false });
    expect((await ada.holdfast(["token", "list"])).code).toBe(3);
  });

  it("SEC-03 forgets a sign-in whose token was revoked elsewhere", async () => {
    const ada = aPerson();
    await ada.json(signIn(), { input: PASSWORD });
    const { token_id: id } = JSON.parse(readFileSync(ada.credentials, "utf8"));
    await ada.json(["token", "revoke", id]);
    expect((await ada.holdfast(["token", "list"])).stderr).toContain("code unauthenticated");
    expect(await ada.json(["logout"])).toEqual({ signed_out: true, ended: [] });
  });

  it("SEC-03 forgets a sign-in also when the server is away, and says that its token still works", async () => {
    const ada = aPerson();
    await ada.json(signIn(), { input: PASSWORD });
    const saved = JSON.parse(readFileSync(ada.credentials, "utf8"));
    writeFileSync(ada.credentials, JSON.stringify({ ...saved, api_url: "http://127.0.0.1:2" }));
    const { code, stderr } = await ada.holdfast(["logout"]);
    expect(code).toBe(3);
    expect(stderr).toContain(`holdfast token revoke ${saved.token_id}`);
    expect(() => statSync(ada.credentials)).toThrow(/ENOENT/);
  });

  it("SEC-03 tells people where they are signed in, and lets the environment win over it", async () => {
    const ada = aPerson();
    const signedIn = await ada.holdfast(signIn(), { input: PASSWORD });
    expect(signedIn.stdout).toBe(
      `Signed in to ${api.url} as ${email}, organization kelp (admin). Expires in 90 days.\n`,
    );
    const env = { HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: api.operatorToken };
    const [everywhere, here] = await Promise.all([
      ada.holdfast(["org", "list"], { env }),
      ada.holdfast(["org", "list"]),
    ]);
    expect(everywhere.stdout).toContain("reef");
    expect(here.stdout).toContain("kelp");
    expect(here.stdout).not.toContain("reef");
    expect((await ada.holdfast(["logout"])).stdout).toBe(`Signed out of ${api.url}.\n`);
  });
});

describe("holdfast login refuses", () => {
  const refused = async (person: Person, args: string[], input = PASSWORD) => {
    const outcome = await person.holdfast(args, { input });
    expect(outcome.stdout).toBe("");
    expect(outcome.stderr).not.toContain(PASSWORD);
    expect(() => statSync(person.credentials)).toThrow(/ENOENT/);
    return outcome;
  };

  it("SEC-03 a wrong password, with exit code 1", async () => {
    const { code, stderr } = await refused(aPerson(), signIn(), "a wrong password");
    expect(code).toBe(1);
    expect(stderr).toContain("code sign_in_failed");
    expect(stderr).not.toContain("a wrong password");
  });

  it("SEC-03 what cannot be asked without a terminal, with exit code 2", async () => {
    const withoutEmail = await refused(aPerson(), ["login", "--api", api.url, "--password-stdin"]);
    expect(withoutEmail).toMatchObject({ code: 2, stderr: expect.stringContaining("--email") });
    const withoutPassword = await refused(aPerson(), ["login", "--api", api.url, "--email", email]);
    expect(withoutPassword).toMatchObject({ code: 2, stderr: expect.stringContaining("--password-stdin") });
  });

  it("SEC-03 an address that is none, with exit code 2", async () => {
    const { code, stderr } = await refused(aPerson(), [
      "login",
      "--api",
      "kelp",
      "--email",
      email,
      "--password-stdin",
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('--api is "kelp". Allowed: an http:// or https:// URL');
  });

  it("SEC-01 an organization that one does not belong to, with exit code 2", async () => {
    const { superuser } = openRoles(api.database);
    const sessions = async () => (await superuser`SELECT FROM sessions WHERE ended_at IS NULL`).length;
    const before = await sessions();
    const { code, stderr } = await refused(aPerson(), [...signIn(), "--org", "reef"]);
    expect(code).toBe(2);
    expect(stderr).toContain('Organization "reef" not found, or you have no access. Organizations: kelp.');
    expect(await sessions(), "no session is left open").toBe(before);
  });

  it("SEC-03 a server that does not answer, with exit code 3", async () => {
    const args = ["login", "--api", "http://127.0.0.1:2", "--email", email, "--password-stdin"];
    const { code, stderr } = await refused(aPerson(), args);
    expect(code).toBe(3);
    expect(stderr).toContain("http://127.0.0.1:2 is unreachable (ECONNREFUSED)");
  });
});

describe("a damaged sign-in file", () => {
  it("SEC-03 is named, with the way out", async () => {
    const ada = aPerson();
    mkdirSync(dirname(ada.credentials), { recursive: true });
    writeFileSync(ada.credentials, '{"api_url": "http://');
    const { code, stderr } = await ada.holdfast(["token", "list"]);
    expect(code).toBe(2);
    expect(stderr).toContain(ada.credentials);
    expect(stderr).toContain("holdfast login");
  });
});
