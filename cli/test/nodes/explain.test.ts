// A node explained on the command line, with evidence that was handed in.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type FirstNode, openFirstNode } from "../support/first-node.ts";

let first: FirstNode;
let name: string;
beforeAll(async () => {
  first = await openFirstNode();
  ({ name } = first.node);
});
afterAll(() => first.cleanUp());

const explained = () => first.json<Explanation>(["node", "explain", name]);

describe("holdfast node explain", () => {
  it("DASH-08 says that a healthy node is healthy, and what that rests on", async () => {
    const { stdout, code } = await first.run(["node", "explain", name]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${name} is healthy\\.\n`));
    expect(stdout).toMatch(/\nManagement working, workload unknown, user access unknown\.\n/);
    expect(stdout).toMatch(/\nagent process +● in order +\S+ \S+ ago +agent\n/);
    expect(stdout).toMatch(/\nheartbeat +received /);
  });

  it("DRIFT-04 DRIFT-13 names the cause, its owner, the next action, and the incident that it belongs to", async () => {
    const { stdout, code } = await first.run([
      "node",
      "evidence",
      name,
      "--ssh",
      "failed",
      "--guest-agent",
      "down",
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${name}: SSH and guest agent failed\\. `));
    expect(stdout).toContain("\nSSH and guest agent failed (node_ops_access_unhealthy)\n");
    expect(stdout).toMatch(/\n {2}severity +P2, high confidence, since /);
    expect(stdout).toMatch(/\n {2}owner +Provider VM runtime; also operator access to hosts\n/);
    expect(stdout).toMatch(/\n {2}next +Restore operator login to the host\. The agent is healthy\.\n/);
    expect(stdout).toMatch(/\n {2}explains +SSH to the host failed \(node_ops_ssh_failed\)\n/);
    await until(async () => (await explained()).incident !== null);
    expect((await explained()).history).toMatchObject([{ reason: "node_ops_access_unhealthy", closed_at: null }]);
    await first.run(["node", "evidence", name, "--ssh", "succeeded"]);
    await until(async () => (await explained()).incident === null);
    expect((await explained()).history).toMatchObject([{ closed_at: expect.any(String) }]);
  });

  it("DRIFT-08 reads the diagnostic records of a host, damaged lines and codes it does not know included", async () => {
    const file = join(first.scratch, "diagnostics.log");
    const at = new Date().toISOString();
    const common = { instance_id: first.node.id, correlation_id: null, count: 1, last_at: at };
    const lines = [
      JSON.stringify({ seq: 2, at, reason: "moon_phase", detail: "The moon is full.", ...common }),
      '{"seq": 1, "at": "20',
      "",
    ];
    writeFileSync(file, lines.map((line) => line.padEnd(1023)).join("\n"));
    const { causes } = await first.json<Explanation>(["node", "evidence", name, "--diagnostics", file]);
    expect(causes).toMatchObject([{ reason: "moon_phase", title: "Moon phase" }]);
    expect(causes[0]?.message).toContain("The moon is full.");
  });

  it("OPS-03 says what is wrong with the command", async () => {
    const wrong = async (...args: string[]) => (await first.failure(["node", "evidence", name, ...args])).message;
    expect(await wrong()).toContain("Nothing to hand in");
    expect(await wrong("--ssh", "maybe")).toContain("succeeded, failed");
    expect(await wrong("--diagnostics", join(first.scratch, "none"))).toContain("Cannot read");
    expect(await wrong("--diagnostics", import.meta.filename)).toContain("contains no diagnostic records");
  });
});
