// Recovery bundles by the command line, from the server's side and on the host, without a connection there.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { listBundles } from "@holdfast/contracts/endpoints/bundles";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { join } from "@holdfast/node-agent/identity/join";
import { beforeAll, describe, expect, it } from "vitest";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { aPerson, command, type Person } from "../support/command.ts";

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let person: Person;

beforeAll(async () => {
  api = await startTestApi();
  const org = await createOrg(api, "bundles");
  client = api.operator(org.id);
  const { token } = await client(createToken, { body: { name: "operator", role: "admin" } });
  person = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
});

async function joined(nodeName: string): Promise<{ stateDir: string; nodeId: string; host: Person }> {
  const { token } = await client(createEnrollmentToken, { body: { node_name: nodeName } });
  const stateDir = scratchDirectory();
  const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
  return { stateDir, nodeId, host: aPerson({ HOLDFAST_AGENT_STATE_DIR: stateDir }) };
}

/** The agent as its service manager starts it. */
async function runUntilKilled(stateDir: string): Promise<void> {
  const env = { PATH: process.env["PATH"], HOLDFAST_AGENT_STATE_DIR: stateDir, HOLDFAST_AGENT_PORT: "0" };
  const agent = spawn(process.execPath, [command, "agent", "run"], { env, cwd: "/", stdio: "ignore" });
  atEnd(() => void agent.kill("SIGKILL"));
  await once(agent, "spawn");
}

type Written = { id: string; file: string; line: string; root_sha256: string };

describe("holdfast node bundle and holdfast agent bundle", () => {
  it("ID-07 write a bundle, show it without its secret, and apply it once on its own host", async () => {
    const { host, nodeId, stateDir } = await joined("gpu-1");
    const other = await joined("gpu-2");
    const out = joinPath(person.home, "usb");
    const shown = await person.holdfast(["node", "bundle", "create", "gpu-1", "--out", out]);
    expect(shown.stdout).toMatch(/holdfast agent bundle apply --line hfbundle1\.[\w-]+\.[\w-]+\n/);
    const [name = ""] = readdirSync(out);
    expect(name).toBe("gpu-1.bundle-1.json");
    const file = joinPath(out, name);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const secret = (JSON.parse(readFileSync(file, "utf8")) as { content: { token: string } }).content.token;
    expect(shown.stdout).not.toContain(secret);

    const inspected = await host.holdfast(["agent", "bundle", "inspect", file]);
    expect(inspected).toMatchObject({ code: 0, stderr: "" });
    expect(inspected.stdout).toContain(`Recovery bundle 1 for gpu-1 (${nodeId})`);
    expect(inspected.stdout).toContain("It can be applied here.");
    expect(inspected.stdout).not.toContain(secret);

    const wrong = await other.host.holdfast(["agent", "bundle", "apply", file]);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("This host is the node gpu-2");

    const applied = await host.json(["agent", "bundle", "apply", file]);
    expect(applied).toMatchObject({ seq: 1, node_id: nodeId, changed_files: [], agent_running: false });
    await runUntilKilled(stateDir);
    const find = async () => (await client(listBundles, {})).items[0];
    await expect.poll(find).toMatchObject({ state: "used", applied_at: expect.any(String) });
    await expect
      .poll(() => client(getNode, { params: { node_id: nodeId } }))
      .toMatchObject({ connection: "online", status: "active" });
    const again = await host.holdfast(["agent", "bundle", "apply", file]);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("was applied here already") });
    expect(again.stderr).not.toContain(secret);
  });

  it("ID-07 take the bundle as one pasted line, and refuse one that was changed", async () => {
    const { host } = await joined("gpu-3");
    const written = await person.json<Written>(["node", "bundle", "create", "gpu-3", "--out", person.home]);
    const text = readFileSync(written.file, "utf8");
    writeFileSync(written.file, text.replace('"seq": 1', '"seq": 9'));
    const changed = await host.holdfast(["agent", "bundle", "apply", written.file]);
    expect(changed).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("it was changed after it was created"),
    });
    const cut = await host.holdfast(["agent", "bundle", "apply", "--line", written.line.slice(0, 200)]);
    expect(cut.code).toBe(1);
    const pasted = await host.holdfast(["agent", "bundle", "apply", "--line", "-"], {
      input: `${written.line}\n`,
    });
    expect(pasted).toMatchObject({ code: 0, stderr: "" });
    expect((await host.holdfast(["agent", "bundle", "apply"])).code).toBe(2);

    const listed = await person.holdfast(["node", "bundle", "list"]);
    expect(listed.stdout).toContain(written.id);
    expect(await person.json(["node", "bundle", "revoke", written.id])).toEqual({ id: written.id, revoked: true });
    expect((await person.holdfast(["node", "bundle", "list"])).stdout).toMatch(
      new RegExp(`${written.id}.*revoked`),
    );
  });

  it("ID-08 write the bundles of all nodes that have no current recovery token with one command", async () => {
    const out = joinPath(person.home, "all");
    const { written, failed } = await person.json<{
      written: { node_name: string; file: string }[];
      failed: unknown[];
    }>([...["node", "bundle", "create", "--all-without-token", "--out", out]]);
    expect(failed).toEqual([]);
    // The first one is connected, and has a token.
    expect(written.map(({ node_name }) => node_name).sort()).toEqual(["gpu-2", "gpu-3"]);
    expect(readdirSync(out)).toHaveLength(2);
    expect(statSync(out).mode & 0o777).toBe(0o700);
    const both = await person.holdfast(["node", "bundle", "create", "gpu-1", "--all-without-token"]);
    expect(both.code).toBe(2);
  });
});
