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
    return file.code;
  } finally {
    await build.close();
  }
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
    `const contracts = {\n${imports("contract")}};`,
    `const executors = {\n${imports("execute")}};`,
    "const load = async (all, name) => (Object.hasOwn(all, name) ? (await all[name]()).default : undefined);",
    "export const taskTypeNames = () => Object.keys(contracts);",
    "export const loadContract = (name) => load(contracts, name);",
    "export const loadExecutor = (name) => load(executors, name);\n",
  ].join("\n");
}
