// The archive as another machine gets it: unpacked and run far away from the checkout.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { taskTypeNames } from "@holdfast/tasks/registry";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PackedArchive, packArchive } from "./archive.ts";
import { ascii, bundleAgent, withLookups } from "./bundle.ts";
import type { Arch } from "./packages.ts";

const scratch = mkdtempSync(join(tmpdir(), "holdfast-archive-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const cache = fileURLToPath(new URL("../../node_modules/.cache/holdfast-agent", import.meta.url));
const version = "7.8.9";

async function pack(name: string): Promise<PackedArchive & { path: string }> {
  const directory = join(scratch, name);
  mkdirSync(directory);
  const bundle = await bundleAgent({ version });
  const packed = packArchive({ arch: process.arch as Arch, version, bundle, directory, cache });
  return { ...packed, path: join(directory, packed.file) };
}

describe("a bundle", () => {
  it("looks up what it imported", () => {
    expect(
      withLookups('import fs, { a, b as c } from "node:fs";\nimport * as d from "node:os";\nimport "./e.mjs";'),
    ).toBe(
      'const fs = globalThis.process.getBuiltinModule("node:fs"); ' +
        'const { a, b: c } = globalThis.process.getBuiltinModule("node:fs");\n' +
        'const d = globalThis.process.getBuiltinModule("node:os");\nimport "./e.mjs";',
    );
    expect(() => withLookups('import "node:fs";')).toThrow("not understood");
  });

  it("says the same in ASCII", () => {
    const code = 'const text = "… 😀"; return [text, `é`, /^[…😀]+$/u.test("😀…")];';
    expect(ascii(code)).not.toBe(code);
    expect(new Function(ascii(code))()).toEqual(new Function(code)());
    expect(() => ascii("String.raw`…`")).toThrow("String.raw");
  });
});

describe("the agent's archive", () => {
  let packed: Awaited<ReturnType<typeof pack>>;
  const unpacked = join(scratch, "unpacked/holdfast-agent");
  const agent = (...args: string[]) =>
    spawnSync(join(unpacked, "bin/holdfast"), args, {
      encoding: "utf8",
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", HOLDFAST_AGENT_STATE_DIR: join(scratch, "state") },
    });
  const sources = () =>
    new Map(
      readdirSync(join(unpacked, "lib"))
        .filter((name) => name.endsWith(".mjs"))
        .map((name) => [name, readFileSync(join(unpacked, "lib", name), "utf8")]),
    );
  beforeAll(async () => {
    packed = await pack("one");
    mkdirSync(join(scratch, "unpacked"));
    execFileSync("tar", ["-xzf", packed.path, "-C", join(scratch, "unpacked")]);
  });

  it("AGENT-09 is named by its digest, and the same again when it is packed again", async () => {
    const [found] = execFileSync("sha256sum", [packed.path], { encoding: "utf8" }).split(" ");
    expect(found).toBe(packed.sha256);
    expect(packed.file).toBe(`holdfast-agent-7.8.9-linux-${process.arch}-${packed.sha256.slice(0, 16)}.tar.gz`);
    expect((await pack("two")).sha256).toBe(packed.sha256);
  });

  it("AGENT-09 runs by itself, with the Node.js in it", () => {
    expect(agent("--version")).toMatchObject({ status: 0, stdout: "7.8.9\n", stderr: "" });
    const { status, stdout } = agent("agent", "diagnose", "--json");
    expect([status, JSON.parse(stdout).state]).toEqual([1, "not_enrolled"]);
    const unpaired = agent("agent", "connect", "--credentials", join(scratch, "none.json"));
    expect([unpaired.status, unpaired.stderr]).toEqual([2, expect.stringContaining("This agent is not paired")]);
    const wrong = agent("node", "list");
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining("unknown command")]);
  });

  it("AGENT-09 has every task type in it, and nothing of the machine it was made on", () => {
    const code = [...sources().values()].join("");
    for (const name of taskTypeNames()) expect(code).toContain(`"${name}": () => `);
    expect(code).not.toContain(fileURLToPath(new URL("../..", import.meta.url)));
  });

  it("TASK-07 has checks in it and no schema library", () => {
    const code = [...sources().values()].join("");
    expect(code).toContain("CheckFailed");
    expect(code).not.toMatch(/\bzod\b|ZodError/);
  });

  it("imports none of Node's modules, whose properties would all be read, and is kept in one byte for each character", () => {
    for (const [name, code] of sources()) {
      expect(code, name).not.toMatch(/^import\b.*"node:/m);
      expect(Buffer.byteLength(code), name).toBe(code.length);
    }
    expect(sources().get("holder.mjs")).toMatch(/^const .*process\.getBuiltinModule\("node:net"\);$/m);
  });

  it("AGENT-06 loads VMs, sandboxes and other commands only when they are needed", () => {
    const loads = (name: string, seen = new Set<string>()): Set<string> => {
      if (seen.has(name)) return seen;
      seen.add(name);
      const code = sources().get(name) ?? "";
      for (const [, part = ""] of code.matchAll(/^(?:import|export)\b.*from "\.\/(.+)";$/gm)) loads(part, seen);
      return seen;
    };
    const whatHas = (text: string) => [...sources()].find(([, code]) => code.includes(text))?.[0] ?? "";
    const first = loads("agent.mjs");
    for (const text of ["qemu-system-", "--unshare-pid", "commander"]) {
      expect(whatHas(text), text).toMatch(/-.*\.mjs$/);
      expect(first, text).not.toContain(whatHas(text));
    }
  });
});
