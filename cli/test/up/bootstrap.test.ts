// A host with a bootstrap token in its environment: a real agent that joins by itself, loses everything
// and comes back, and what it does when it is refused.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import type { EnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Started, until } from "../../../testkit/processes/holdfast.ts";
import { type FirstNode, openFirstNode } from "../support/first-node.ts";

type MadeToken = EnrollmentToken & { token: string; api_url: string };

let first: FirstNode;
beforeAll(async () => {
  first = await openFirstNode();
});
afterAll(() => first.cleanUp());

const run: FirstNode["run"] = (...args) => first.run(...args);
const json: FirstNode["json"] = (args) => first.json(args);
const failure: FirstNode["failure"] = (args) => first.failure(args);

const makeToken = (node: string, ...more: string[]) =>
  json<MadeToken>(["node", "token", "create", "--bootstrap", "--node", node, ...more]);
const listed = async (id: string) =>
  (await json<{ items: EnrollmentToken[] }>(["node", "token", "list"])).items.find((token) => token.id === id);

/** An env file of the source documents, as systemd gives it to the agent. */
const hostNamed = (name: string, made: MadeToken, stateDir: string) => ({
  NODE_AGENT_HOST_ID: name,
  NODE_AGENT_BOOTSTRAP_TOKEN: made.token,
  NODE_AGENT_CONTROL_PLANE_URL: made.api_url,
  HOLDFAST_AGENT_STATE_DIR: stateDir,
});
const startAgent = (env: Record<string, string>) => first.installation.start(["agent", "run"], env);
const online = async (name: string): Promise<Node> => {
  const found: Node[] = [];
  await until(async () => {
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    found.push(...items.filter((node) => node.name === name && node.connection === "online"));
    return found.length > 0;
  });
  return found[0] as Node;
};
const works = async (name: string) =>
  until(async () => (await run(["task", "run", name, "node.noop", "--expires", "60"])).code === 0);
const diagnosed = async (stateDir: string, what: string) =>
  until(async () => {
    const { stdout } = await run(["agent", "diagnose", "--json"], { HOLDFAST_AGENT_STATE_DIR: stateDir });
    return stdout.includes(what);
  });
const stopped = async (agent: Started) => {
  agent.process.kill("SIGTERM");
  return agent.ended;
};

describe("holdfast node token create --bootstrap", () => {
  it("ID-01 prints the lines for the host's environment, once, and lists the token until it is revoked", async () => {
    const { stdout } = await run([
      "node",
      "token",
      "create",
      "--bootstrap",
      "--node",
      "shoal-1",
      "--expires",
      "7d",
    ]);
    expect(stdout).toMatch(/^HOLDFAST_BOOTSTRAP_TOKEN=hfb_\S{43}\.\S{43}\nHOLDFAST_NODE_API_URL=https:\/\/127/);
    expect(stdout).toContain("enrolls as shoal-1 with this token");
    expect(stdout).toMatch(/\| sha256sum -c .*hfb_/);
    const shown = await run(["node", "token", "list"]);
    expect(shown.stdout).toMatch(/bootstrap\s+local operator\s+shoal-1\s+valid until \d{4}-\S+ \S+\s+never\s+0/);
    expect(shown.stdout).not.toContain("hfb_");
    const { items } = await json<{ items: EnrollmentToken[] }>(["node", "token", "list"]);
    const token = items.find(({ node_name }) => node_name === "shoal-1") as EnrollmentToken;
    expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).toBe(7 * 86_400_000);
    await json(["node", "token", "revoke", token.id]);
    expect((await run(["node", "token", "list"])).stdout).toMatch(/shoal-1\s+revoked/);
  });

  it.for([
    [["--bootstrap"], "usage"],
    [["--bootstrap", "--node", "a", "--expires", "366d"], "usage"],
    [["--bootstrap", "--node", "a", "--expires", "soon"], "usage"],
    [["--bootstrap", "--node", "a", "--name", "b"], "usage"],
    [["--expires", "25h"], "usage"],
    [["--bootstrap", "--node", "not a name"], "invalid_request"],
    [["--bootstrap", "--node", "01a1e13c-bc3d-71c5-9b58-aada3c2346d4"], "not_found"],
  ] as const)("ID-01 refuses %j", async ([args, code]) => {
    expect(await failure(["node", "token", "create", ...args])).toMatchObject({ code });
  });
});

describe("holdfast agent run with a bootstrap token", () => {
  it("ID-01 joins by itself, and again after it has lost everything, as the same node", async () => {
    const made = await makeToken("reef-7");
    const stateDir = join(first.scratch, "reef-7");
    const env = hostNamed("reef-7", made, stateDir);
    const agent = startAgent(env);
    const node = await online("reef-7");
    await works("reef-7");
    expect((await stopped(agent)).code).toBe(0);

    const restarted = startAgent(env);
    await works("reef-7");
    expect(await listed(made.id), "it has its identity still").toMatchObject({
      uses: 1,
      enrolled_node_id: node.id,
    });
    await stopped(restarted);

    rmSync(stateDir, { recursive: true });
    const rebuilt = startAgent(env);
    await works("reef-7");
    expect((await online("reef-7")).id).toBe(node.id);
    expect(await listed(made.id)).toMatchObject({ uses: 2 });
    const { stdout, stderr } = await stopped(rebuilt);
    expect(stdout + stderr).not.toMatch(/hfb_[\w-]{20}/);
  });

  it("ID-01 on two hosts leaves the node to the newest, and reports it on the other one and in the audit", async () => {
    const made = await makeToken("reef-8");
    const dirs = ["reef-8-a", "reef-8-b"].map((name) => join(first.scratch, name));
    const [a = "", b = ""] = dirs;
    const older = startAgent(hostNamed("reef-8", made, a));
    const node = await online("reef-8");
    const newer = startAgent(hostNamed("reef-8", made, b));
    await diagnosed(a, "auth_failed");
    await works("reef-8");
    expect(await listed(made.id), "the older one does not take it back").toMatchObject({ uses: 2 });
    const { items } = await json<{ items: AuditEvent[] }>(["audit", "list", "--target", node.id]);
    const uses = items.filter(({ action }) => action === "node.enroll");
    expect(uses.map(({ details }) => details["again"])).toEqual([true, false]);
    expect(uses[0]?.details).toMatchObject({ token_id: made.id, last_heard_at: expect.any(String) });
    for (const agent of [older, newer]) await stopped(agent);
  });

  it("ID-01 that is refused keeps running, says why on the host, and can be stopped", async () => {
    const made = await makeToken("reef-9");
    await json(["node", "token", "revoke", made.id]);
    const stateDir = join(first.scratch, "reef-9");
    const agent = startAgent(hostNamed("reef-9", made, stateDir));
    await diagnosed(stateDir, "enrollment_token_revoked");
    const outcome = await run(["agent", "diagnose"], { HOLDFAST_AGENT_STATE_DIR: stateDir });
    expect(outcome.stdout).toContain("recovery_enrollment_blocked");
    expect(outcome.stdout).toContain("holdfast node token create --bootstrap --node reef-9");
    expect(agent.process.exitCode).toBeNull();
    expect(await stopped(agent)).toMatchObject({ code: 0, stderr: "" });
    const { items } = await json<{ items: AuditEvent[] }>(["audit", "list", "--action", "node.enroll"]);
    const refusals = items.filter(({ target_id }) => target_id === made.id);
    // It may have tried again meanwhile.
    expect(refusals.length).toBeGreaterThan(0);
    for (const one of refusals)
      expect(one).toMatchObject({ result: "failed", reason: "enrollment_token_revoked" });
  });

  it("ID-01 for another host than it is says so", async () => {
    const stateDir = join(first.scratch, "reef-10");
    const agent = startAgent(hostNamed("reef-11", await makeToken("reef-10"), stateDir));
    await diagnosed(stateDir, "enrollment_token_wrong_node");
    expect((await stopped(agent)).code).toBe(0);
    expect((await run(["node", "list"])).stdout).not.toMatch(/reef-1[01]/);
  });

  it("ID-01 that is none ends with what to do", async () => {
    const made = await makeToken("reef-12");
    const env = hostNamed("reef-12", made, join(first.scratch, "reef-12"));
    const wrong = await run(["agent", "run"], { ...env, NODE_AGENT_BOOTSTRAP_TOKEN: "s3cret-of-something-else" });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("does not begin with hfb_") });
    expect(wrong.stderr + wrong.stdout).not.toContain("s3cret");
    const { NODE_AGENT_CONTROL_PLANE_URL: _, ...without } = env;
    expect(await run(["agent", "run"], without)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("HOLDFAST_NODE_API_URL"),
    });
  });

  it("ID-01 is taken by `agent join` too", async () => {
    const made = await makeToken("reef-13");
    const env = hostNamed("reef-13", made, join(first.scratch, "reef-13"));
    const joined = await run(["agent", "join", "--json"], env);
    expect(JSON.parse(joined.stdout)).toMatchObject({ node_name: "reef-13", rekeyed: false });
    expect(JSON.parse((await run(["agent", "join", "--json"], env)).stdout)).toMatchObject({ rekeyed: true });
  });
});
