// A new task type is one new folder. It is added to a copy of the repository, where everything that
// has to do with types must find it, and nothing else may change.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import {
  copyRepository,
  filesOfRepository,
  type RepositoryCopy,
  repository,
} from "../testkit/tasks/repository-copy.ts";
import { taskTypeNames } from "./registry.ts";
import { hardCodedTypes } from "./test/hard-coded-types.ts";

const TYPE = "test.scaffolded";
const contract = `import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "${TYPE}",
  summary: "Count what it is given",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 10,
  expiresAfterSeconds: 60,
  concurrency: 1,
  capabilities: [],
  byHand: true,
  resultBytes: 1024,
  params: z.strictObject({ words: z.array(z.string()) }),
  progress: z.strictObject({}),
  result: z.strictObject({ count: z.int() }),
  failures: { nothing_to_count: { message: "There is nothing to count.", nextStep: "Give it some words." } },
});
`;
const execute = `import { executor } from "../executor.ts";
import type contract from "./contract.ts";

export default executor<typeof contract>({
  async run({ params, fail }) {
    if (params.words.length === 0) throw fail("nothing_to_count");
    return { count: params.words.length };
  },
});
`;

/** What an api and an agent do with a type, without either of them. */
const useIt = `
import { loadAllContracts, loadCheckedType, loadContract, loadExecutor, taskTypeNames } from "@holdfast/tasks/registry";
const contract = await loadContract("${TYPE}");
const checked = await loadCheckedType("${TYPE}");
const executor = await loadExecutor("${TYPE}");
const result = await executor.run({ params: checked.params.parse({ words: ["a", "b"] }) });
process.stdout.write(JSON.stringify({
  named: taskTypeNames().includes("${TYPE}"),
  listed: (await loadAllContracts()).has("${TYPE}"),
  refused: !checked.params.safeParse({ words: "a" }).success,
  result: contract.result.parse(result),
}));
`;

const A_WHILE = 300_000;

describe("a new task type", () => {
  let copy: RepositoryCopy;
  let before: Map<string, string>;
  let folder: string;

  beforeAll(async () => {
    copy = await copyRepository();
    await copy.run(process.execPath, "scripts/generate.ts");
    before = copy.digests();
    folder = join(copy.path, "tasks", TYPE);
    mkdirSync(folder);
    writeFileSync(join(folder, "contract.ts"), contract);
    writeFileSync(join(folder, "execute.ts"), execute);
    await copy.run(process.execPath, "scripts/generate.ts");
  }, A_WHILE);

  it("TASK-07 is found, declared and executed", async () => {
    const used = await copy.run(process.execPath, "--input-type=module", "--eval", useIt);
    expect(JSON.parse(used.output)).toEqual({ named: true, listed: true, refused: true, result: { count: 2 } });
  });

  // An api and an agent that are started from `copy.path` would show the same from end to end; this is the place.

  it("TASK-07 changes nothing outside its folder, not even what is generated", async () => {
    const after = copy.digests();
    const touched = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path) !== after.get(path),
    );
    expect(touched.sort()).toEqual(
      ["contract.generated.ts", "contract.ts", "execute.ts"].map((file) => `tasks/${TYPE}/${file}`),
    );
    // References that were out of date before were brought up to date without it.
    const changed = (await copy.changes()).filter((path) => !path.startsWith("docs/reference/"));
    expect(changed).toEqual(touched);
  });

  it(
    "TASK-07 keeps to the boundaries and the types",
    async () => {
      const found = await complaints(copy);
      // A tree in which somebody is at work may have complaints of its own.
      if (found.length > 0) rmSync(folder, { recursive: true });
      const known = found.length > 0 ? await complaints(copy) : [];
      expect(found.filter((line) => !known.includes(line))).toEqual([]);
    },
    A_WHILE,
  );
});

/** One line each. */
async function complaints(copy: RepositoryCopy): Promise<string[]> {
  const boundaries = await copy.run(process.execPath, "scripts/check-boundaries.ts");
  expect(boundaries.output, "it looked").toMatch(/^\d+ modules, \d+ violations$/m);
  // Nothing outside of tasks/ has changed, as the test before shows.
  return [...boundaries.output.split("\n"), ...(await copy.typeErrors("tasks"))].filter(
    (line) => line !== "" && !/^\d+ modules, /.test(line),
  );
}

describe("the types that there are", () => {
  it("TASK-07 are listed nowhere: only who asks for a type names it", () => {
    const sources = filesOfRepository()
      .filter((path) => /[.](ts|tsx|mjs|js|sql|json)$/.test(path))
      .map((path) => ({ path, text: readFileSync(join(repository, path), "utf8") }));
    expect(sources.length).toBeGreaterThan(200);
    expect(hardCodedTypes(sources, taskTypeNames())).toEqual([]);
  });

  const types = ["node.noop", "diag.health_probe", "diag.network_probe"];
  it.for([
    ["control-plane/src/tasks/known.ts", 'const known = ["node.noop", "diag.health_probe"];'],
    ["control-plane/src/tasks/one.ts", "if (type === 'node.noop') return;"],
    ["control-plane/db/migrations/0009_types.sql", "CHECK (type IN ('node.noop'))"],
    ["node-agent/src/list.ts", 'enqueue(tx); const all = ["node.noop", "diag.health_probe"];'],
    ["tasks/index.ts", 'export const all = { "node.noop": noop }; enqueue(tx)'],
    ["tasks/node.noop/execute.ts", 'import "../diag.health_probe/x.ts"; run("diag.health_probe");'],
  ])("TASK-07 would be missed in %s", ([path = "", text = ""]) => {
    expect(hardCodedTypes([{ path, text }], types)).toEqual([expect.stringContaining(`${path} names `)]);
  });

  it.for([
    ["control-plane/src/nodes/probe.ts", 'await enqueue(tx, { type: "diag.health_probe" });'],
    [
      "web/src/features/nodes/Probe.tsx",
      'call(createTask, { type: "diag.network_probe" }) // or "diag.health_probe"',
    ],
    ["control-plane/src/nodes/probe-now.ts", 'await tasks.run({ type: "diag.health_probe" });'],
    ["control-plane/src/nodes/trail.ts", 'recordAudit(tx, {\n  action: "node.noop",\n});'],
    ["tasks/node.noop/contract.ts", 'type: "node.noop"'],
    ["control-plane/test/tasks.test.ts", '["node.noop", "diag.health_probe"]'],
    ["docs/tasks.json", '"node.noop"'],
    ["cli/src/commands/task/run.ts", '"for example: holdfast task run <node> diag.health_probe"'],
  ])("TASK-07 may be named in %s", ([path = "", text = ""]) => {
    expect(hardCodedTypes([{ path, text }], types)).toEqual([]);
  });
});
