// A new connector is one new folder and one line. It is added to a copy of the repository, where everything that has to do with
// connectors must find it, and nothing else may change but what is generated.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { copyRepository, type RepositoryCopy } from "../../../testkit/tasks/repository-copy.ts";
import * as all from "../../src/connectors/all.ts";

const contract = `import { z } from "zod";
import { connector } from "../connector.ts";
import { HttpsUrl } from "../forms.ts";

export default connector({
  name: "scaffolded",
  title: "Scaffolded",
  summary: "Counts",
  usesNetwork: true,
  actions: {
    count: {
      summary: "Count",
      effect: "idempotent",
      secret: null,
      input: z.strictObject({ url: HttpsUrl, words: z.array(z.string()).min(1) }),
      output: z.strictObject({ count: z.int() }),
    },
  },
});
`;
const actions = `import { httpActions } from "../actions.ts";
import { jsonOf } from "../json-answer.ts";
import type contract from "./contract.ts";

export default httpActions<typeof contract>({
  count: {
    message: ({ url, words }) => ({ kind: "http", method: "POST", url, headers: {}, body: JSON.stringify(words) }),
    read: (answer) => ({ count: Number(jsonOf(answer)["count"]) }),
  },
});
`;

const useIt = `
import { describeAction } from "@holdfast/workflows/connectors/run-action";
import { readWorkflow } from "@holdfast/workflows/document/read";
import { connectorNames, usualConnectors } from "@holdfast/node-agent/execution/connectors";
const input = { url: "https://a.example/", words: ["a"] };
const request = { connector: "scaffolded", action: "count", idempotencyKey: "k" };
const described = await describeAction({ ...request, input });
const refused = await describeAction({ ...request, input: { ...input, words: [] } });
const step = { type: "connector.action", connector: "scaffolded", action: "count", input: { words: 7 } };
process.stdout.write(JSON.stringify({
  body: described.message.body,
  refused: refused.failure.code,
  problems: readWorkflow(JSON.stringify({ version: "1", nodes: { step } })).problems.map(({ code }) => code),
  onAgents: connectorNames.includes("scaffolded") && !usualConnectors.includes("scaffolded"),
}));
`;

const A_WHILE = 300_000;
const connectors = "workflows/src/connectors";

describe("a new connector", () => {
  let copy: RepositoryCopy;
  let before: Map<string, string>;

  beforeAll(async () => {
    copy = await copyRepository();
    await copy.run(process.execPath, "scripts/generate.ts");
    before = copy.digests();
    const folder = join(copy.path, connectors, "scaffolded");
    mkdirSync(folder);
    writeFileSync(join(folder, "contract.ts"), contract);
    writeFileSync(join(folder, "actions.ts"), actions);
    const list = join(copy.path, connectors, "all.ts");
    writeFileSync(
      list,
      `${readFileSync(list, "utf8")}export { default as scaffolded } from "./scaffolded/contract.ts";\n`,
    );
    await copy.run(process.execPath, "scripts/generate.ts");
  }, A_WHILE);

  it("FLOW-01 is found by validation, the worker and agents", async () => {
    const used = await copy.run(process.execPath, "--input-type=module", "--eval", useIt);
    expect(JSON.parse(used.output)).toEqual({
      ...{ body: '["a"]', refused: "input_invalid", onAgents: true },
      problems: ["connector_input", "connector_input"],
    });
  });

  it("FLOW-01 changes nothing but its folder, one line, and what is generated", () => {
    const after = copy.digests();
    const touched = [...after.keys()].filter((path) => before.get(path) !== after.get(path));
    expect(touched.sort()).toEqual(
      [
        "docs/reference/connectors.md",
        `${connectors}/all.ts`,
        `${connectors}/built-in.generated.ts`,
        ...["actions.ts", "contract.generated.ts", "contract.ts"].map(
          (file) => `${connectors}/scaffolded/${file}`,
        ),
      ].sort(),
    );
  });
});

describe("the connectors that there are", () => {
  it("FLOW-01 pass the suite of connectors, all actions of each", () => {
    const here = fileURLToPath(new URL(".", import.meta.url));
    const tested = readdirSync(here, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(tested.map(({ name }) => name).sort()).toEqual(
      Object.keys(all)
        .filter((name) => name !== "echo")
        .sort(),
    );
    for (const { name } of tested) {
      const test = readFileSync(join(here, name, `${name}.test.ts`), "utf8");
      expect(test).toContain(`connectorSuite("${name}"`);
      const declared = new Map(Object.entries(all)).get(name)?.actions ?? {};
      for (const action of Object.keys(declared))
        expect(test).toMatch(new RegExp(`"?${action.replace(".", "\\.")}"?: \\{`));
    }
  });
});
