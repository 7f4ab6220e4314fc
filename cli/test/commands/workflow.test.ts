// Workflow documents on the command line, without a server.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { aPerson } from "../support/command.ts";

const person = aPerson();
const file = (name: string, text: string) => {
  const path = join(person.home, name);
  writeFileSync(path, text);
  return path;
};

const v2 = file(
  "old.json",
  JSON.stringify({
    version: "v2",
    trigger: { type: "trigger.cron", config: { cron: "0 3 * * *" } },
    nodes: [{ id: "ask", type: "connector.action", config: { connectorId: "echo", actionId: "echo" } }],
  }),
);
const changed = file(
  "new.yaml",
  'version: "1"\ntriggers: [{ type: cron, schedule: "0 4 * * *" }]\nnodes:\n  ask: { type: connector.action, connector: echo, action: echo }\n',
);

describe("FLOW-01 holdfast workflow", () => {
  it("validate accepts a v2 document and prints its next times", async () => {
    const { code, stdout } = await person.holdfast(["workflow", "validate", v2, "--json"]);
    expect(code).toBe(0);
    const printed = JSON.parse(stdout);
    expect(printed).toMatchObject({ valid: true, version: "v2", nodes: ["ask"] });
    expect(printed.schedules[0].next).toHaveLength(3);
  });

  it("validate names file, line, column and path of each problem, and exits with 1", async () => {
    const broken = file(
      "broken.yaml",
      'version: "1"\nnodes:\n  a:\n    type: condition\n    if: nodes.b.output\n',
    );
    const { code, stderr } = await person.holdfast(["workflow", "validate", broken]);
    expect(code).toBe(1);
    expect(stderr).toContain(`${broken}:5:15: nodes.a.if: There is no node b.`);
  });

  it("convert prints version 1 as YAML, which is valid", async () => {
    const { code, stdout } = await person.holdfast(["workflow", "convert", v2]);
    expect(code).toBe(0);
    expect(stdout).toContain('version: "1"');
    const again = await person.holdfast(["workflow", "validate", file("converted.yaml", stdout)]);
    expect(again).toMatchObject({ code: 0 });
  });

  it("diff compares by structure, whatever the format", async () => {
    const { stdout } = await person.holdfast(["workflow", "diff", v2, changed, "--json"]);
    expect(JSON.parse(stdout).changes.map(({ path }: { path: string }) => path)).toEqual(["triggers"]);
    expect(await person.holdfast(["workflow", "diff", changed, changed])).toMatchObject({
      stdout: "No differences.\n",
    });
  });

  it("evaluate prints a value, and stops what runs away", async () => {
    const context = file("context.json", JSON.stringify({ input: { prices: [1, 2] } }));
    const sum = await person.holdfast(["workflow", "evaluate", "$sum(input.prices)", "--context", context]);
    expect(sum).toMatchObject({ code: 0, stdout: "3\n" });
    const runaway = await person.holdfast(["workflow", "evaluate", "($f := function() { $f() }; $f())"]);
    expect(runaway.code).toBe(1);
    expect(runaway.stderr).toMatch(/took (more than 1000000 steps|longer than 5000 ms)/);
  });

  it("simulate shows which way a run takes, and exits with 1 when it fails", async () => {
    const branches = file(
      "branches.yaml",
      `version: "1"
nodes:
  ask: { type: connector.action, connector: echo, action: echo, retry: { attempts: 2 } }
  check: { type: condition, after: [ask], if: nodes.ask.output.ok }
  good: { type: wait, after: [check.true], for: 1h }
  bad: { type: wait, after: [check.false], approval: {} }
`,
    );
    const way = async (args: string[]) => {
      const { code, stdout } = await person.holdfast(["workflow", "simulate", branches, ...args]);
      return { code, lines: stdout.trim().split("\n") };
    };
    const good = await way(["--output", 'ask={"ok":true}']);
    expect(good.code).toBe(0);
    expect(good.lines).toEqual(
      expect.arrayContaining(["node_succeeded check true", "node_skipped bad", "node_succeeded good"]),
    );
    const failed = await way(["--fail", "ask"]);
    expect(failed.code).toBe(1);
    expect(failed.lines.join("\n")).toMatch(/node_retried ask.*\n.*ask \(attempt 2\)[\s\S]*run_failed/);
    expect(await way(["--fail", "nothing"])).toMatchObject({ code: 2 });
  });
});
