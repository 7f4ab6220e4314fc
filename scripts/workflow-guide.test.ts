import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readWorkflow } from "@holdfast/workflows/document/read";
import { Node } from "@holdfast/workflows/document/schema";
import { describe, expect, it } from "vitest";
import { commandsIn, problemOf } from "./commands-in-text.ts";

const guide = readFileSync(fileURLToPath(new URL("../docs/workflows.md", import.meta.url)), "utf8");
const examples = [...guide.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);

describe("the guide to workflows", () => {
  it("FLOW-01 has valid examples only", () => {
    expect(examples.length).toBeGreaterThan(2);
    for (const example of examples) expect(readWorkflow(example)).toMatchObject({ ok: true });
  });

  it("FLOW-01 names every type of node", () => {
    const types = Node.options.map(({ shape }) => shape.type.value);
    for (const type of types) expect(guide).toContain(`\`${type}\``);
  });

  it("FLOW-01 has only commands that exist", () => {
    const commands = commandsIn(guide);
    expect(commands.length).toBeGreaterThan(5);
    expect(commands.flatMap((command) => problemOf(command) ?? [])).toEqual([]);
  });
});
