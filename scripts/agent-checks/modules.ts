// The modules with checks, beside the modules whose schemas they are made from: `contract.generated.ts` of each task
// type and each connector, and `<name>.generated.ts` of each `<name>.schema.ts` in what runs on nodes.

import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { z } from "zod";
import type * as registry from "../../tasks/registry.ts";
import type { AnyTaskType } from "../../tasks/type.ts";
import type { Connector } from "../../workflows/src/connectors/connector.ts";
import { checkOf, NotGeneratable } from "./check-of.ts";
import { type Code, call, fields, literal, shareRepeated } from "./code.ts";

/** By path below `root`, which may be another checkout. */
export async function checkModules(root: string): Promise<Record<string, string>> {
  const load = (path: string): Promise<unknown> => import(pathToFileURL(join(root, path)).href);
  const modules: Record<string, string> = {};
  const { loadContract, taskTypeNames } = (await load("tasks/registry.ts")) as typeof registry;
  for (const name of taskTypeNames()) {
    const contract = await loadContract(name);
    if (contract) modules[`tasks/${name}/contract.generated.ts`] = contractModule(contract);
  }
  const connectors = (await load("workflows/src/connectors/all.ts")) as Record<string, Connector>;
  for (const [name, connector] of Object.entries(connectors)) {
    if (connector.name !== name)
      throw new NotGeneratable(`connectors/${name} declares the name ${connector.name}.`);
    modules[`workflows/src/connectors/${name}/contract.generated.ts`] = connectorModule(connector);
  }
  modules["workflows/src/connectors/built-in.generated.ts"] = builtInModule(Object.keys(connectors));
  for (const path of globSync("{tasks,node-agent/src}/**/*.schema.ts", { cwd: root }).sort()) {
    const schemas = (await load(path)) as Record<string, unknown>;
    modules[path.replace(/[.]schema[.]ts$/, ".generated.ts")] = schemaModule(path, schemas);
  }
  return modules;
}

/** Writes those that differ. */
export async function writeCheckModules(root: string): Promise<void> {
  for (const [path, text] of Object.entries(await checkModules(root))) {
    if (readFileIfPresent(join(root, path)) !== text) writeFileDurably(join(root, path), text, 0o644);
  }
}

/** The declaration as agents have it: without schemas, and without what only the server asks for. */
export function contractModule(contract: AnyTaskType): string {
  const { params, progress, result, orderKey: _ofTheServer, ...declared } = contract;
  const path = `tasks/${contract.type}/contract.ts`;
  const parts = Object.entries({ params, progress, result }).map(
    ([name, schema]) => [name, call("check.of", checkOf(schema, `${path}: ${name}`))] as const,
  );
  const whole = fields([...plainFields(declared, path), ...parts]);
  const { declarations, print } = shareRepeated([whole]);
  return [
    header("contract.ts"),
    'import type { CheckedTaskType } from "../checked-type.ts";\n',
    declarations && `${declarations}`,
    `export default ${print(whole)} satisfies CheckedTaskType;\n`,
  ]
    .filter(Boolean)
    .join("\n");
}

/** The declaration of a connector as agents have it. */
function connectorModule({ actions, ...facts }: Connector): string {
  const path = `workflows/src/connectors/${facts.name}/contract.ts`;
  const checked = Object.entries(actions).map(([name, { input, output, ...declared }]): [string, Code] => {
    const parts = Object.entries({ input, output }).map(
      ([part, schema]) => [part, call("check.of", checkOf(schema, `${path}: ${name}.${part}`))] as const,
    );
    return [name, fields([...plainFields(declared, path), ...parts])];
  });
  const whole = fields([...plainFields(facts, path), ["actions", fields(checked)]]);
  const { declarations, print } = shareRepeated([whole]);
  return [
    header("contract.ts"),
    'import type { CheckedConnector } from "../checked-connector.ts";\n',
    declarations && `${declarations}`,
    `export default ${print(whole)} satisfies CheckedConnector;\n`,
  ]
    .filter(Boolean)
    .join("\n");
}

function plainFields(values: object, path: string): [string, Code][] {
  return Object.entries(values).map(([name, value]) => {
    const code = literal(value);
    if (code === undefined) throw new NotGeneratable(`${path}: ${name} is not plain data.`);
    return [name, code];
  });
}

/** What each connector does is loaded with its first action. */
function builtInModule(names: readonly string[]): string {
  return [
    "// Generated from all.ts by `npm run generate`; do not edit.\n",
    'import type { CheckedConnector } from "./checked-connector.ts";',
    ...names.map((name) => `import ${name} from "./${name}/contract.generated.ts";`),
    "",
    "export const builtIn: Readonly<Record<string, { contract: CheckedConnector; actions: () => Promise<{ default: object }> }>> = {",
    ...names.map((name) => `  ${name}: { contract: ${name}, actions: () => import("./${name}/actions.ts") },`),
    "};\n",
  ].join("\n");
}

function schemaModule(path: string, exported: Record<string, unknown>): string {
  const codes = Object.entries(exported).map(([name, schema]): [string, Code] => {
    if (!(schema instanceof z.ZodType)) throw new NotGeneratable(`${path}: ${name} is not a schema.`);
    return [name, checkOf(schema, `${path}: ${name}`)];
  });
  const { declarations, print } = shareRepeated(codes.map(([, code]) => code));
  const checks = codes.map(
    ([name, code]) =>
      `export type ${name} = z.output<typeof schemas.${name}>;\n` +
      `export const ${name}: check.Check<${name}> = ${print(call("check.of", code))};\n`,
  );
  return [
    header(basename(path)),
    'import type { z } from "zod";',
    `import type * as schemas from "./${basename(path)}";\n`,
    declarations,
    ...checks,
  ]
    .filter(Boolean)
    .join("\n");
}

function header(source: string): string {
  return `// Generated from ${source} by \`npm run generate\`; do not edit.\n\nimport * as check from "@holdfast/kit/checks";`;
}
