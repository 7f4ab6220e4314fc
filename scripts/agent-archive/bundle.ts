// Bundles the agent for machines that have nothing of ours: the agent in one file, and the holder of a
// terminal, which is a process of its own, in another beside it. What the sources find by looking around
// them on disk is put in as code: the version, and the task types.

import { fileURLToPath } from "node:url";
import { type Plugin, type RolldownOptions, rolldown } from "rolldown";
import { taskTypeNames } from "../../tasks/registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Files by name: `agent.mjs` and `holder.mjs`. */
export async function bundleAgent({ version }: { version: string }): Promise<Map<string, string>> {
  const entries = {
    "agent.mjs": "cli/src/commands/agent/shipped.ts",
    "holder.mjs": "node-agent/src/drivers/pty/holder.mjs",
  };
  const bundled = await Promise.all(
    Object.entries(entries).map(
      async ([name, entry]) => [name, await bundle(`${root}${entry}`, version)] as const,
    ),
  );
  return new Map(bundled);
}

async function bundle(input: string, version: string): Promise<string> {
  const options: RolldownOptions = {
    input,
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
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    const [file, ...others] = output;
    if (others.length > 0) throw new Error(`the bundle of ${input} has more than one file`);
    return ascii(withLookups(file.code));
  } finally {
    await build.close();
  }
}

/**
 * Looks Node's modules up instead of importing them. An import reads every property of a module, and some of them load
 * more: a second HTTP client, the root certificates, the standard input. Here all of it would happen when the agent
 * starts, also for what only another command or a rare task imports. Measured: 16 MB.
 */
export function withLookups(code: string): string {
  return code.replaceAll(/^import\b.*"node:.*$/gm, (line) => {
    const [, whole, all, named, module] =
      /^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{ (.+) \})? from ("node:[^"]+");$/.exec(line) ?? [];
    if (module === undefined) throw new Error(`bundling the agent: not understood: ${line}`);
    const names = [whole, all, named && `{ ${named.replaceAll(" as ", ": ")} }`].filter(Boolean);
    return names.map((name) => `const ${name} = process.getBuiltinModule(${module});`).join(" ");
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
