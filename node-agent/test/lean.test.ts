// What `holdfast agent run` brings into memory before a task comes. It runs on every host, so each
// library here is paid for everywhere.

import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const run = new URL("../../cli/src/commands/agent/run.ts", import.meta.url).href;
/** Tells each file that is loaded, and each part of Node itself. */
const program = `
  import { registerHooks } from "node:module";
  const files = [];
  registerHooks({ load: (url, context, next) => { files.push(url); return next(url, context); } });
  await import(${JSON.stringify(run)});
  console.log(JSON.stringify({ files, builtin: process.moduleLoadList }));
`;

describe("the agent at rest", () => {
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  const { files, builtin } = JSON.parse(output) as { files: string[]; builtin: string[] };

  it("loads none of the libraries, and nothing of the control plane", () => {
    expect(files.length).toBeGreaterThan(30);
    const foreign = files.filter((url) => url.includes("node_modules/") || !/^(file:|node:)/.test(url));
    expect(foreign).toEqual([]);
    for (const part of ["control-plane", "service", "gateway", "web"]) {
      expect(files.filter((url) => url.includes(`/${part}/src/`))).toEqual([]);
    }
  });

  it("does not wake the parts of Node that it never uses", () => {
    const heavy = builtin.filter((name) => /deps\/undici|http2|internal\/util\/parse_args/.test(name));
    expect(heavy).toEqual([]);
  });
});
