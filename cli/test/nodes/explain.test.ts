// A node explained on the command line, with evidence that was handed in.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Incident } from "@holdfast/contracts/endpoints/incidents";
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
    expect(stdout).toMatch(/\nAgent process +● in order +\S+ \S+ ago +agent\n/);
    expect(stdout).toMatch(/\nheartbeat +received /);
  });

  it("DRIFT-04 DRIFT-13 OPS-04 names the cause, its owner, the next action, a runbook that can be opened, and its incident", async () => {
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
    const [, runbook = ""] = /\n {2}runbook +(\S+)\n/.exec(stdout) ?? [];
    expect(runbook).toBe(`${first.installation.upFile().api_url}/runbooks/node_ops_access_unhealthy`);
    expect(await (await fetch(runbook)).text()).toContain("<h1>SSH and guest agent failed</h1>");
    await until(async () => (await explained()).incident !== null);
    expect((await explained()).history).toMatchObject([{ reason: "node_ops_access_unhealthy", closed_at: null }]);
    await first.run(["node", "evidence", name, "--ssh", "succeeded"]);
    await until(async () => (await explained()).incident === null);
    expect((await explained()).history).toMatchObject([{ closed_at: expect.any(String) }]);
  });

  it("DRIFT-07 an incident is listed, shown, and exported for today's classifier, which says the same again", async () => {
    const { items } = await first.json<{ items: Incident[] }>([
      "incident",
      "list",
      "--node",
      name,
      "--state",
      "closed",
    ]);
    const [incident] = items;
    expect(incident).toMatchObject({ reason: "node_ops_access_unhealthy", state: "closed", node_name: name });
    const shown = await first.run(["incident", "show", incident?.id ?? ""]);
    expect(shown.stdout).toMatch(new RegExp(`^${name}: SSH and guest agent failed .*, closed\n`));
    expect(shown.stdout).toMatch(/\n {2}noticed +.*, after \d+ s \(at most 1800 s\)\n {2}ended /);
    const file = join(first.scratch, "evidence.json");
    const written = await first.run(["incident", "export", incident?.id ?? "", "--out", file]);
    expect(written.stdout).toContain(`npm run classify -- ${file}`);
    const script = fileURLToPath(new URL("../../../scripts/classify.ts", import.meta.url));
    const printed = execFileSync(process.execPath, [script, file], { encoding: "utf8" });
    expect(printed).toMatch(/^SSH and guest agent failed \(node_ops_access_unhealthy\)\n/);
    expect((await first.run(["incident", "export", incident?.id ?? "", "--out", file])).stderr).toContain(
      "EEXIST",
    );
    expect((await first.failure(["incident", "show", first.node.id])).code).toBe("not_found");
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
