// What a contract may import. Api, agent and reference all read contracts, so a contract must not
// bring anything of a host with it, not even by way of something else.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { loadContract, loadExecutor, taskTypeNames } from "./registry.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What the text imports at run time or for its types, statically or not. */
function importsOf(text: string): string[] {
  const code = text.replace(/^\s*\/\/.*$/gm, "");
  return [...code.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, name = ""]) => name);
}

function fileOf(name: string, from: string): string | undefined {
  if (name.startsWith(".")) return join(dirname(from), name);
  const ours = /^@holdfast\/contracts\/(.+)$/.exec(name)?.[1];
  return ours && join(root, "contracts/src", `${ours}.ts`);
}

/** Everything that comes along, with the file that brings it. */
function broughtBy(file: string, seen = new Map<string, string>()): Map<string, string> {
  for (const name of importsOf(readFileSync(file, "utf8"))) {
    const next = fileOf(name, file);
    if (seen.has(next ?? name)) continue;
    seen.set(next ?? name, file);
    if (next) broughtBy(next, seen);
  }
  return seen;
}

describe.for(taskTypeNames())("%s", (type) => {
  const contract = join(root, "tasks", type, "contract.ts");

  it("TASK-07 has a contract that imports zod, contracts and the declaration of types only", () => {
    const foreign = importsOf(readFileSync(contract, "utf8")).filter(
      (name) => name !== "zod" && name !== "../type.ts" && !name.startsWith("@holdfast/contracts/"),
    );
    expect(foreign).toEqual([]);
  });

  it("TASK-07 has a contract that brings nothing of a host with it", () => {
    const packages = [...broughtBy(contract)].filter(([name]) => !name.startsWith("/") && name !== "zod");
    expect(packages).toEqual([]);
  });

  it("TASK-07 is described, declared and executable under its own name", async () => {
    expect(readFileSync(join(root, "tasks", type, "README.md"), "utf8")).toMatch(new RegExp(`^# ${type}\n`));
    const declared = await loadContract(type);
    expect(declared?.type).toBe(type);
    expect(declared?.resultBytes).toBeLessThanOrEqual(1024 * 1024);
    expect(await loadExecutor(type)).toHaveProperty("run");
  });

  it("TASK-05 has secrets only if people cannot run it by hand: they have no way to provide them", async () => {
    const { secrets = [], byHand } = (await loadContract(type)) ?? expect.unreachable();
    expect(secrets.length > 0 && byHand).toBe(false);
  });

  it("TASK-07 says of every failure what happened and what to do, and names it in its description", async () => {
    const readme = readFileSync(join(root, "tasks", type, "README.md"), "utf8");
    const failures = (await loadContract(type))?.failures ?? {};
    for (const [code, { message, nextStep }] of Object.entries<{ message: string; nextStep: string }>(failures)) {
      expect(code).toMatch(/^[a-z_]{1,64}$/);
      expect(message).toMatch(/[.]$/);
      expect(nextStep).toMatch(/[.]$/);
      expect(readme).toContain(`\`${code}\``);
    }
    expect(existsSync(contract)).toBe(true);
  });
});

describe("names of types", () => {
  it.for([
    "../../etc/passwd",
    "node.noop/../diag.health_probe",
    "os-users",
    "test",
    "",
    "node.nope",
    "constructor",
  ])("TASK-01 %s is none", async (name) => {
    expect(await loadContract(name)).toBeUndefined();
    expect(await loadExecutor(name)).toBeUndefined();
  });

  it("TASK-01 there is none that runs what it is given on the node; vm.exec does in the guest of a VM, and not by hand", async () => {
    const names = taskTypeNames();
    expect(names.length).toBeGreaterThanOrEqual(5);
    expect(names.filter((name) => /shell|exec|command|script/.test(name))).toEqual(["vm.exec"]);
    expect(await loadContract("vm.exec")).toMatchObject({ byHand: false, capabilities: ["vm_host"] });
  });
});
