// `holdfast sim` against a real api: nodes join, a second run takes the same ones, and `remove` retires them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { retireFleet, seedFleet } from "../../../testkit/api/fleet.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../../testkit/api/nodes.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { aPerson } from "../support/command.ts";

const holdfast = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let token: string;

beforeAll(async () => {
  api = await startTestApi();
  const org = await createOrg(api, "sims");
  client = api.operator(org.id);
  token = (await client(createToken, { body: { name: "sim", role: "admin" } })).token;
});

/** Until all have enrolled; then Ctrl-C. Returns what it printed. */
async function runSim(...args: string[]): Promise<Record<string, unknown>[]> {
  const child = spawn(process.execPath, [holdfast, "sim", "--json", ...args], {
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const events: Record<string, unknown>[] = [];
  for await (const line of createInterface(child.stdout)) {
    events.push(JSON.parse(line));
    if (events.at(-1)?.["event"] === "joined") child.kill("SIGINT");
  }
  if (child.exitCode === null) await once(child, "exit");
  expect(child.exitCode).toBe(0);
  // On a busy machine it also says now and then how far it is.
  return events.filter(({ event }) => event !== "status");
}
const namesNow = async () => {
  const { items } = await client(listNodes, { query: { limit: 200 } });
  return items.filter(({ status }) => status !== "retired").map(({ name }) => name);
};

describe("holdfast sim", () => {
  it("joins as many nodes as it is told; a second run takes the same ones; remove retires them", async () => {
    expect(await runSim("--agents", "3", "--calm")).toMatchObject([
      { event: "joined", agents: 3 },
      { event: "stopped", agents: 3 },
    ]);
    expect((await namesNow()).sort()).toEqual(["sim-00001", "sim-00002", "sim-00003"]);
    await runSim("--agents", "4");
    expect((await namesNow()).sort()).toEqual(["sim-00001", "sim-00002", "sim-00003", "sim-00004"]);
    const person = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
    expect(await person.json(["sim", "remove"])).toEqual({ retired: 4 });
    expect(await namesNow()).toEqual([]);
  });

  it("says why it does not begin: too many for this process, no right to add nodes", async () => {
    const person = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token });
    const many = await person.holdfast(["sim", "--agents", "100000", "--json"]);
    expect(many.code).toBe(1);
    expect(JSON.parse(many.stderr).error).toMatchObject({
      code: "too_many_open_files",
      next_step: expect.stringContaining("ulimit -n"),
    });
    const { token: weak } = await client(createToken, { body: { name: "weak", role: "member" } });
    const refused = await aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: weak }).holdfast([
      ...["sim", "--agents", "1", "--json"],
    ]);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stderr).error).toMatchObject({ code: "forbidden" });
  });
});

describe("an organization whose simulated nodes are retired", () => {
  let person: ReturnType<typeof aPerson>;
  const RETIRED = 60;
  const listed = async (...args: string[]) => {
    const { code, stdout, stderr } = await person.holdfast(["node", "list", ...args]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.split("\n");
    const rows = lines.slice(lines.findIndex((line) => line.startsWith("NAME")) + 1);
    return { head: lines[0], rows: rows.slice(0, rows.indexOf("")), last: lines.at(-2), stdout };
  };

  beforeAll(async () => {
    const org = await createOrg(api, "past");
    await sendHeartbeatFrom(await enrollTestNode(api, org.id, { hostname: "rock-1" }));
    const { superuser } = openRoles(api.database);
    await seedFleet(superuser, org.id, RETIRED);
    await retireFleet(superuser, org.id);
    const made = await api.operator(org.id)(createToken, { body: { name: "past", role: "admin" } });
    person = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: made.token });
  });

  it("DASH-01 lists the node that is left, and counts what it lists", async () => {
    const { head, rows, stdout } = await listed();
    expect(head).toMatch(/^1 node: 1 \w+$/);
    expect(rows).toEqual([expect.stringMatching(/^rock-1 /)]);
    expect(stdout).not.toContain("sim-");
    expect((await person.json<{ items: unknown[] }>(["node", "list"])).items).toHaveLength(1);
  });

  it("DASH-01 lists retired nodes when asked, and says where rows are cut", async () => {
    const first = await listed("--state", "retired");
    expect(first.head).toBe("60 retired nodes");
    expect(first.rows).toHaveLength(50);
    const next = /^Showing 50 of 60\. For the next page, add (--after) (\S+)$/.exec(first.last ?? "");
    const last = await listed("--state", "retired", ...(next?.slice(1) ?? []));
    expect(last.rows).toHaveLength(10);
    expect(last.last).toBe("Showing 10 of 60. This is the last page.");
    const all = await listed("--all", "--limit", "200");
    expect(all.head).toMatch(/^1 node: 1 \w+; also 60 retired nodes$/);
    expect(all.rows).toHaveLength(61);
  });

  it("DASH-01 finds a node by name among any number, and suggests those that match", async () => {
    expect(await person.json(["node", "show", "rock-1"])).toMatchObject({ name: "rock-1", status: "active" });
    expect(await person.json(["node", "show", "sim-00007"])).toMatchObject({ status: "retired" });
    const { stderr } = await person.holdfast(["node", "show", "ROCK"]);
    expect(stderr).toContain("Similar names: rock-1.");
    expect((await person.holdfast(["node", "show", "reef"])).stderr).toContain("Nodes: rock-1.");
  });

  it("ID-09 reports of a change only what the server has done, not what an offline node would do", async () => {
    const said = async (change: string) => (await person.holdfast(["node", change, "rock-1"])).stdout;
    const { superuser } = openRoles(api.database);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '1 hour'`;
    expect(await said("quarantine")).toMatch(/^rock-1 is quarantined: it gets no tasks\. /);
    expect(await said("reactivate")).toBe("rock-1 is active but offline: tasks wait until its agent is online.\n");
    await superuser`UPDATE node_presence SET heartbeat_at = now()`;
    await said("fence");
    expect(await said("reactivate")).toBe("rock-1 is active: it gets tasks again.\n");
  });
});
