// `holdfast sim` against a real api: nodes join, a second run takes the same ones, and `remove` retires them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi } from "../../control-plane/test/support/api.ts";
import { aPerson } from "./support/command.ts";

const holdfast = fileURLToPath(new URL("../bin/holdfast.mjs", import.meta.url));
let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let token: string;

beforeAll(async () => {
  api = await startTestApi();
  const org = await createOrg(api, "sims");
  client = api.operator(org.id);
  token = (await client(createToken, { body: { name: "sim", role: "admin" } })).token;
});

/** Until all have joined; then Ctrl-C. Answers with what it printed. */
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
