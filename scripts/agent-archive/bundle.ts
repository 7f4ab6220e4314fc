// Bundles the agent for machines that have nothing of ours: `agent.mjs`, beside it the parts that it loads when they are needed
// (a task type, VMs, sandboxes, another command), and the holder of a terminal, which is a process of its own. A part that is
// never needed costs no memory: 65 instead of 69 MB at rest. What the sources find by looking around them on disk is put in as
// code: the version, and the task types.

import { fileURLToPath } from "node:url";
import { type Plugin, type RolldownOptions, rolldown } from "rolldown";
import { taskTypeNames } from "../../tasks/registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Files by name: `agent.mjs`, `holder.mjs` and the parts. All are in one directory: the agent finds the holder beside itself. */
export async function bundleAgent({ version }: { version: string }): Promise<Map<string, string>> {
  const agent = await bundle("cli/src/commands/agent/shipped.ts", "agent.mjs", version);
  const holder = await bundle("node-agent/src/drivers/pty/holder.mjs", "holder.mjs", version);
  if (holder.length > 1) throw new Error("the holder of terminals has more than one file");
  return new Map([...agent, ...holder]);
}

async function bundle(entry: string, name: string, version: string): Promise<[name: string, code: string][]> {
  const options: RolldownOptions = {
    input: `${root}${entry}`,
    cwd: root,
    platform: "node",
    // Found at run time beside the bundle: native code cannot be in it.
    external: [/^node:/, /^@lydell\//],
    plugins: [builtIn(version)],
    onLog(level, log) {
      if (level === "warn") throw new Error(`bundling the agent: ${log.message}`);
    },
  };
  const build = await rolldown(options);
  try {
    // Comments and names stay as they are: a stack trace from a node should be readable.
    const { output } = await build.generate({
      ...{ format: "esm", entryFileNames: name, chunkFileNames: "[name]-[hash].mjs" },
    });
    return output.map((file) => {
      if (file.type !== "chunk") throw new Error(`bundling the agent: ${file.fileName} is no code`);
      return [file.fileName, ascii(withLookups(file.code))];
    });
  } finally {
    await build.close();
  }
}

/**
 * Looks Node's modules up instead of importing them. An import reads every property of a module, and some of them load
 * more: a second HTTP client, the root certificates, the standard input. Measured: 16 MB. `globalThis`, because a source
 * that imports `node:process` calls it `process`.
 */
export function withLookups(code: string): string {
  return code.replaceAll(/^import\b.*"node:.*$/gm, (line) => {
    const [, whole, all, named, module] =
      /^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{ (.+) \})? from ("node:[^"]+");$/.exec(line) ?? [];
    if (module === undefined) throw new Error(`bundling the agent: not understood: ${line}`);
    const names = [whole, all, named && `{ ${named.replaceAll(" as ", ": ")} }`].filter(Boolean);
    return names.map((name) => `const ${name} = globalThis.process.getBuiltinModule(${module});`).join(" ");
  });
}

/** Node.js keeps a source with any other character in two bytes for each. */
export function ascii(code: string): string {
  if (code.includes("String.raw"))
    throw new Error("bundling the agent: String.raw takes characters as they are written");
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function builtIn(version: string): Plugin {
  const replaced: Record<string, string> = {
    [`${root}node-agent/src/version.ts`]: `export const agentVersion = ${JSON.stringify(version)};\n`,
    [`${root}tasks/registry.ts`]: registry(),
  };
  return {
    name: "built-in",
    load: (id) => replaced[id] ?? null,
  };
}

/** The same functions over a list that is fixed; each type is still evaluated only when its first task comes. */
function registry(): string {
  const imports = (file: string) =>
    taskTypeNames()
      .map((name) => `  ${JSON.stringify(name)}: () => import("./${name}/${file}.ts"),\n`)
      .join("");
  return [
    `const types = {\n${imports("contract.generated")}};`,
    `const executors = {\n${imports("execute")}};`,
    "const load = async (all, name) => (Object.hasOwn(all, name) ? (await all[name]()).default : undefined);",
    "export const taskTypeNames = () => Object.keys(types);",
    "export const loadCheckedType = (name) => load(types, name);",
    "export const loadExecutor = (name) => load(executors, name);\n",
  ].join("\n");
}
