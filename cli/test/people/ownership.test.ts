// A member against another member's allocation, with whole processes: a real user on this machine, real shells, and
// the command line of each person. What a grant gives ends in the middle of a session.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@holdfast/contracts/client";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import { updateMember } from "@holdfast/contracts/endpoints/members";
import { openOwner } from "@holdfast/control-plane/database/connect";
import { databaseName, readCredentials, roles } from "@holdfast/control-plane/database/embedded/credentials";
import { socketUrl } from "@holdfast/control-plane/database/embedded/socket-url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import type { Environment } from "../../../testkit/processes/holdfast.ts";
import { errorOf, type FirstNode, openFirstNode } from "../support/first-node.ts";
import { ask, untilItAnswers } from "../support/shells.ts";
import { openTty, type Tty } from "../support/tty.ts";

type Person = { id: string; email: string; env: Environment };

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

describe.skipIf(lacks("root"))("another member's allocation", () => {
  let first: FirstNode;
  let url: string;
  let ada: Person;
  let bob: Person;
  let allocation: Allocation;
  let place: string;

  beforeAll(async () => {
    first = await openFirstNode({ HOLDFAST_TERMINAL_OPEN_SECONDS: "29" });
    url = (await first.up.ready).api_url;
    [ada, bob] = [await joinAs("ada@kelp.example", "member"), await joinAs("bob@kelp.example", "member")];
    const username = `hft-${randomBytes(5).toString("hex")}`;
    allocation = await as<Allocation>(ada, [
      "allocation",
      "create",
      "--node",
      first.node.name,
      "--user",
      username,
    ]);
    place = `${username}@${first.node.name}`;
  });
  afterAll(async () => {
    const { items } = await first.json<{ items: { slug: string }[] }>(["org", "list"]);
    const org = items[0]?.slug ?? "";
    const all = await first.json<{ items: Allocation[] }>(["allocation", "list", "--org", org]);
    for (const { id, status } of all.items) {
      if (status !== "released") await first.run(["allocation", "release", id, "--org", org]);
    }
    await first.cleanUp();
  });

  /** Invited, with a password and an API token for the command line. */
  async function joinAs(email: string, role: string): Promise<Person> {
    const invitation = await first.json<{ url: string }>(["org", "invite", email, "--role", role]);
    const headers = { "content-type": "application/json", origin: url };
    const secret = new URL(invitation.url).hash.slice(1);
    const body = JSON.stringify({ secret, password: "correct horse battery", name: email });
    const redeemed = await fetch(`${url}/v1/links/redeem`, { method: "POST", headers, body });
    const { id } = (await redeemed.json()) as { id: string };
    const cookie = redeemed.headers.get("set-cookie")?.split(";")[0] ?? "";
    const made = await fetch(`${url}/v1/tokens`, {
      method: "POST",
      headers: { ...headers, cookie },
      body: JSON.stringify({ name: "laptop", role }),
    });
    const { token } = (await made.json()) as { token: string };
    return { id, email, env: { HOLDFAST_API_URL: url, HOLDFAST_TOKEN: token } };
  }

  const run = (person: Person, args: string[]) => first.run([...args, "--json"], person.env);
  async function as<T>(person: Person, args: string[]): Promise<T> {
    const { code, stdout, stderr } = await run(person, args);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  function terminalOf(person: Person): Tty {
    const env = { PATH: process.env["PATH"] ?? "", HOME: first.scratch, TERM: "xterm-256color", ...person.env };
    return openTty({ file: process.execPath, args: [command, "terminal", place], env });
  }

  async function shellOf(person: Person): Promise<Tty> {
    const tty = terminalOf(person);
    await untilItAnswers(tty);
    expect(await ask(tty, "id -un")).toBe(allocation.username);
    return tty;
  }

  const userExists = () => spawnSync("id", [allocation.username]).status === 0;

  it("SEC-01 gives no shell to another member and cannot be released by one; both attempts are audited", async () => {
    expect(userExists()).toBe(true);
    const tty = terminalOf(bob);
    const ended = await Promise.race([tty.ended, untilItAnswers(tty).then(() => "a shell of ada's user")]);
    expect(ended).toMatchObject({ code: 1 });
    const mint = await fetch(`${url}/v1/allocations/${allocation.id}/terminal-tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${bob.env["HOLDFAST_TOKEN"]}`, "content-type": "application/json" },
      body: "{}",
    });
    expect(mint.status).toBe(404);
    const release = await run(bob, ["allocation", "release", allocation.id]);
    expect(release.code).toBe(1);
    expect(errorOf(release).code).toBe("not_found");
    expect(userExists()).toBe(true);
    const denied = await first.json<{ items: AuditEvent[] }>(["audit", "list", "--result", "denied"]);
    expect(denied.items.map(({ action, target_id }) => [action, target_id])).toEqual([
      ["allocation.release", allocation.id],
      ["terminal.create_token", allocation.id],
    ]);
  });

  it("TERM-01 closes a grantee's shell in the middle of a session when the grant is revoked", async () => {
    await as(ada, ["allocation", "grant", place, bob.email, "--level", "use"]);
    const listed = await first.run(["allocation", "list"], bob.env);
    expect(listed.stdout).toContain("ada@kelp.example (your access: use)");
    const tty = await shellOf(bob);
    await as(ada, ["allocation", "revoke-grant", place, bob.email]);
    expect((await tty.ended).code).not.toBe(0);
    expect(tty.shown()).toContain("terminal_access_ended");
    expect((await as<{ items: Allocation[] }>(bob, ["allocation", "list"])).items).toEqual([]);
  });

  it("TERM-01 closes a grantee's shell in the middle of a session when the grant expires", async () => {
    await as(ada, ["allocation", "grant", place, bob.email, "--level", "use", "--expires", "1h"]);
    const tty = await shellOf(bob);
    await moveTwoHoursAgo();
    expect((await tty.ended).code).not.toBe(0);
    expect(tty.shown()).toContain("terminal_access_ended");
    expect((await terminalOf(bob).ended).code).toBe(1);
  });

  it("TERM-01 closes the shell of an administrator who is demoted, and leaves the owner's", async () => {
    const carl = await joinAs("carl@kelp.example", "admin");
    const [owners, tty] = [await shellOf(ada), await shellOf(carl)];
    const operator = createClient({ baseUrl: url, token: operatorToken(), orgId: await orgId() });
    await operator(updateMember, { params: { user_id: carl.id }, body: { role: "member" } });
    expect((await tty.ended).code).not.toBe(0);
    expect(await ask(owners, "id -un")).toBe(allocation.username);
    owners.type("exit\r");
    await owners.ended;
  });

  it("SEC-01 is released by its owner, and the user is gone from the machine", async () => {
    await as(ada, ["allocation", "release", allocation.id]);
    expect(userExists()).toBe(false);
  });

  const operatorToken = () => readFileSync(join(first.installation.dataDir, "operator-token"), "utf8").trim();
  const orgId = async () => (await first.json<{ items: { id: string }[] }>(["org", "list"])).items[0]?.id ?? "";

  /** The grants, so that they have expired: nobody waits an hour. */
  async function moveTwoHoursAgo(): Promise<void> {
    const directory = join(first.installation.dataDir, "postgres");
    const password = readCredentials(directory)?.superuser ?? "";
    const [, , , , socket = ""] = readFileSync(join(directory, "data/postmaster.pid"), "utf8").split("\n");
    const sql = openOwner(
      socketUrl({ user: roles.superuser, password, directory: socket, database: databaseName }),
    );
    await sql`
      UPDATE allocation_grants
      SET granted_at = granted_at - interval '2 hours', expires_at = expires_at - interval '2 hours'`;
    await sql.end({ timeout: 1 });
  }
});
