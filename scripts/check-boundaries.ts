// Checks which package may import which. The rules are the arrows of ARCHITECTURE.md. A run that
// sees no modules passes every rule, so seeing too few of them is a failure of its own. What runs on nodes must also be
// free of the schema library, however far away it is imported (ADR 35).

import { cruise, type IConfiguration, type ICruiseResult } from "dependency-cruiser";
import { waysTo } from "./ways-to.ts";

/** What each package may import of ours, besides itself. */
const allowed: Record<string, string[]> = {
  contracts: [],
  kit: [],
  service: ["contracts", "kit"],
  tasks: ["contracts", "kit"],
  workflows: ["contracts", "kit"],
  "control-plane": ["contracts", "kit", "service", "tasks", "workflows"],
  gateway: ["contracts", "kit", "service"],
  "node-agent": ["contracts", "kit", "tasks", "workflows"],
  "terminal-client": ["contracts"],
  cli: ["contracts", "kit", "service", "control-plane", "gateway", "node-agent", "terminal-client", "workflows"],
  web: ["contracts", "terminal-client", "workflows"],
  chaos: ["contracts", "kit", "control-plane", "node-agent", "cli", "scripts", "testkit"],
  bench: [
    "contracts",
    "kit",
    "service",
    "cli",
    "control-plane",
    "node-agent",
    "tasks",
    "terminal-client",
    "scripts",
    "testkit",
  ],
};

const FEWEST_MODULES = 80;
const FEWEST_ON_NODES = 100;

const configuration: IConfiguration = {
  forbidden: [
    ...Object.entries(allowed).map(([name, others]) => ({
      name: `${name}-imports-only-${others.join("-") || "itself"}`,
      severity: "error" as const,
      from: { path: `^${name}/`, pathNot: "[.]test[.]tsx?$|^[^/]+/test/" },
      to: {
        path: "^[^/]+/",
        dependencyTypesNot: ["core" as const],
        pathNot: `^(${[name, ...others].join("|")})/|node_modules`,
      },
    })),
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "the-database-only-in-the-control-plane",
      severity: "error",
      from: { pathNot: "^control-plane/|[.]test[.]ts$|/test/|^(bench|chaos|testkit)/" },
      to: { path: "node_modules/pg/" },
    },
    {
      name: "mechanisms-know-no-noun",
      severity: "error",
      from: { path: "^control-plane/src/mechanisms/", pathNot: "[.]test[.]ts$" },
      to: { path: "^control-plane/src/", pathNot: "^control-plane/src/(mechanisms|database)/" },
    },
    {
      name: "nouns-do-not-know-the-list-of-modules",
      severity: "error",
      from: { path: "^control-plane/src/", pathNot: "^control-plane/src/(api|worker)/" },
      to: { path: "^control-plane/src/modules[.]ts$" },
    },
    {
      name: "what-runs-on-the-host-only-in-the-agent",
      severity: "error",
      from: { pathNot: "^(tasks|node-agent)/|[.]test[.]ts$" },
      to: { path: "^tasks/[^/]+/execute[.]ts$" },
    },
    {
      name: "no-tests-in-the-product",
      severity: "error",
      from: { pathNot: "[.]test[.]tsx?$|/test/|^(scripts|bench|chaos|testkit)/" },
      to: { path: "[.]test[.]tsx?$|^[^/]+/test/|^testkit/" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "/dist/" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "default"] },
  },
};

const result = (
  await cruise([...Object.keys(allowed), "testkit"], {
    ruleSet: configuration,
    validate: true,
    ...configuration.options,
  })
).output as ICruiseResult;
const seen = result.modules.filter((module) => /^[a-z-]+\/.*[.]tsx?$/.test(module.source)).length;
const { violations } = result.summary;
for (const { rule, from, to } of violations) process.stdout.write(`${rule.name}: ${from} → ${to}\n`);
const { ways, visited } = waysTo(result.modules, {
  // The bundle begins at the first; types are found at run time, so no import leads to them.
  from: /^(cli\/src\/commands\/agent\/shipped|node-agent\/src\/.+|tasks\/[a-z]+[.][^/]+\/(contract[.]generated|execute|simulate))[.](ts|mjs)$/,
  not: /[.](test|schema)[.]ts$/,
  to: /node_modules\/zod\//,
});
for (const way of ways) process.stdout.write(`nodes-have-no-schema-library: ${way.join(" → ")}\n`);
const violated = violations.length + ways.length;
process.stdout.write(`${seen} modules, ${violated} violations\n`);
if (seen < FEWEST_MODULES)
  process.stdout.write(`Fewer than ${FEWEST_MODULES} modules seen: the check is blind.\n`);
if (visited < FEWEST_ON_NODES)
  process.stdout.write(`Fewer than ${FEWEST_ON_NODES} modules on nodes seen: the check is blind.\n`);
process.exitCode = violated > 0 || seen < FEWEST_MODULES || visited < FEWEST_ON_NODES ? 1 : 0;
