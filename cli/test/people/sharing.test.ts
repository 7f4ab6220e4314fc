// Sharing, transferring and limiting allocations from the command line: what it prints, and where it refuses.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, describe, expect, it } from "vitest";
import { addMember, type Browser, createOrg, startTestApi } from "../../../testkit/api/api.ts";
import { enrollTestNode } from "../../../testkit/api/nodes.ts";
import { sendProfileHeartbeat } from "../../../testkit/api/terminals.ts";
import { aPerson, type Person } from "../support/command.ts";

let operator: Person;
let ada: Person;
let bob: Person;
let admin: Person;
let allocationId: string;

beforeAll(async () => {
  const api = await startTestApi();
  const kelp = await createOrg(api, "kelp");
  const node = await enrollTestNode(api, kelp.id, { hostname: "reef-1" });
  await sendProfileHeartbeat(node, node.enrolled.profile.version);
  const withToken = (token: string) => aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
  const atCommandLine = async (person: Browser, role: "member" | "admin") =>
    withToken((await person.client(kelp.id)(createToken, { body: { name: "laptop", role } })).token);
  operator = withToken(api.operatorToken);
  const owner = await addMember(api, kelp, "ada@kelp.example", "member");
  ada = await atCommandLine(owner, "member");
  bob = await atCommandLine(await addMember(api, kelp, "bob@kelp.example", "member"), "member");
  admin = await atCommandLine(await addMember(api, kelp, "root@kelp.example", "admin"), "admin");
  const body = { node_id: node.id, username: "alice" };
  ({ id: allocationId } = await owner.client(kelp.id)(createAllocation, { body }));
});

const said = async (person: Person, ...args: string[]) => {
  const { code, stdout, stderr } = await person.holdfast(args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
};
const refused = async (person: Person, ...args: string[]) => {
  const { code, stderr } = await person.holdfast(args);
  return { code, stderr };
};

describe("holdfast allocation", () => {
  it("SEC-01 shares one by name, lists with whom, and ends it", async () => {
    const place = "alice@reef-1";
    const unknown = await refused(bob, "allocation", "show", allocationId);
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("not_found") });
    const shared = await said(
      ada,
      "allocation",
      "grant",
      place,
      "Bob@kelp.example",
      "--level",
      "use",
      "--expires",
      "12h",
    );
    expect(shared).toMatch(
      /^Shared alice@reef-1 with bob@kelp\.example until \d{4}-.*: they can see it and open terminals\./,
    );
    const advice = /holdfast (allocation revoke-grant \S+ \S+)/.exec(shared)?.[1] ?? "";
    expect(await said(ada, "allocation", "grants", place)).toMatch(
      /^MEMBER\s+LEVEL\s+EXPIRES\s+GRANTED BY\s+GRANTED\nbob@kelp\.example\s+use\s+\d{4}-/,
    );
    expect(await said(bob, "allocation", "list")).toMatch(/OWNER.*\n.*ada@kelp\.example \(your access: use\)/);
    expect(await said(bob, "allocation", "list", "--mine")).toContain("No allocation matches.");
    expect(await said(ada, ...advice.split(" "))).toContain(
      "bob@kelp.example no longer has access to alice@reef-1.",
    );
    expect(await said(ada, "allocation", "grants", place)).toContain("alice@reef-1 is not shared.");
    expect(await said(bob, "allocation", "list")).toContain("No allocation matches.");
  });

  it("SEC-01 is transferred by administrators only", async () => {
    const transfer = ["allocation", "transfer", allocationId, "--to", "bob@kelp.example"];
    expect(await refused(ada, ...transfer)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("forbidden"),
    });
    expect(await said(admin, ...transfer)).toContain("bob@kelp.example is now the owner of alice@reef-1.");
    expect(await said(bob, "allocation", "list", "--mine")).toMatch(
      /alice\s+reef-1\s+requested\s+bob@kelp\.example/,
    );
    const nobody = await refused(admin, "allocation", "transfer", allocationId, "--to", "nobody@kelp.example");
    expect(nobody.stderr).toContain('Member "nobody@kelp.example" not found in this organization.');
  });
});

describe("holdfast quota", () => {
  it("SEC-01 shows and changes the limits, each by whom it is for", async () => {
    expect(await said(bob, "quota", "show")).toMatch(/organization\s+1\s+500\nyou\s+1\s+25\n/);
    const set = await said(admin, "quota", "set", "--member", "bob@kelp.example", "--limit", "1");
    expect(set).toMatch(/bob@kelp\.example \(individual limit\)\s+1\s+1\n/);
    const full = await refused(bob, "allocation", "create", "--node", "reef-1", "--user", "more", "--no-wait");
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining("quota_exceeded") });
    expect(full.stderr).toContain("The owner has 1 of at most 1 allocations.");
    await said(admin, "quota", "set", "--member", "bob@kelp.example", "--limit", "default");
    const beyond = await refused(admin, "quota", "set", "--organization", "1");
    expect(beyond.stderr).toContain("Only the platform operator");
    expect(await said(operator, "quota", "set", "--organization", "1", "--org", "kelp")).toMatch(
      /organization\s+1\s+1\n/,
    );
    expect((await refused(admin, "quota", "set", "--limit", "1")).code).toBe(2);
    expect((await refused(admin, "quota", "set")).code).toBe(2);
  });
});
