// Writes the reference pages from the declarations they describe, and the agent's checks from schemas; with --check
// only compares, and fails when one is out of date.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { clientSettings } from "@holdfast/cli/client/settings";
import { ingressSettings } from "@holdfast/cli/ingress/settings";
import { upSettings } from "@holdfast/cli/up/settings";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { errorCatalogue } from "@holdfast/contracts/errors";
import { preflightReportSchema } from "@holdfast/contracts/preflight/report";
import { openApiDocument } from "@holdfast/contracts/public/openapi";
import { nouns, stateGroups } from "@holdfast/contracts/words/glossary";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { workerSettings } from "@holdfast/control-plane/worker/settings";
import { gatewaySettings } from "@holdfast/gateway/settings";
import { readFileIfPresent } from "@holdfast/kit/files";
import { unsupportedNames } from "@holdfast/kit/known-names";
import type { Setting, Settings } from "@holdfast/kit/settings";
import { executionSettings } from "@holdfast/node-agent/execution/settings";
import { agentSettings, joinSettings } from "@holdfast/node-agent/settings";
import { version } from "@holdfast/service/version";
import { jsonSchema } from "@holdfast/workflows/document/schema";
import { checkModules } from "./agent-checks/modules.ts";
import { connectorsPage } from "./connectors-page.ts";
import { reasonsPage } from "./reasons-page.ts";
import { runbookPages } from "./runbook-pages.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const processes: Record<string, Settings> = {
  "holdfast up": upSettings,
  api: apiSettings,
  gateway: gatewaySettings,
  worker: workerSettings,
  "holdfast ingress": ingressSettings,
  agent: agentSettings,
  "holdfast agent join": joinSettings,
  "holdfast agent connect": executionSettings,
  "commands that talk to a server": clientSettings,
};

const pages: Record<string, string> = {
  "docs/reference/settings.md": settingsPage(),
  "docs/reference/errors.md": errorsPage(),
  "docs/reference/glossary.md": glossaryPage(),
  "docs/reference/reasons.md": reasonsPage(),
  "docs/reference/connectors.md": await connectorsPage(root),
  ...runbookPages(root),
  ...(await checkModules(root)),
  "docs/reference/preflight-report.v1.schema.json": `${JSON.stringify(preflightReportSchema(), null, 2)}\n`,
  "docs/reference/workflow.v1.schema.json": `${JSON.stringify(jsonSchema(), null, 2)}\n`,
  "docs/reference/openapi.json": `${JSON.stringify(openApiDocument(allEndpoints, { version }), null, 2)}\n`,
};

const outdated = Object.entries(pages).filter(
  ([path, content]) => readFileIfPresent(join(root, path)) !== content,
);
for (const [path, content] of outdated) {
  if (process.argv.includes("--check")) {
    process.stdout.write(`${path} is out of date; run \`npm run generate\`.\n`);
    process.exitCode = 1;
    continue;
  }
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
  process.stdout.write(`wrote ${relative(root, join(root, path))}\n`);
}

function settingsPage(): string {
  const byName = new Map<
    string,
    { declared: Setting; users: string[]; helps: Set<string>; aliases: Set<string> }
  >();
  for (const [user, settings] of Object.entries(processes)) {
    for (const declared of Object.values(settings)) {
      const entry = byName.get(declared.env) ?? { declared, users: [], helps: new Set(), aliases: new Set() };
      entry.users.push(user);
      entry.helps.add(declared.help);
      for (const alias of declared.aliases) entry.aliases.add(alias);
      byName.set(declared.env, entry);
    }
  }
  const sections = [...byName.values()].map(({ declared, users, helps, aliases }) =>
    [
      `## \`${declared.env}\``,
      "",
      [...helps].join("\n\n"),
      "",
      `- Read by: ${users.join(", ")}`,
      `- Allowed: ${declared.kind.allowed}`,
      `- Default: ${defaultOf(declared)}`,
      ...(aliases.size > 0 ? [`- Also accepted as: ${[...aliases].map((a) => `\`${a}\``).join(", ")}`] : []),
      ...(declared.secret ? ["- Secret: never shown in errors or logs"] : []),
    ].join("\n"),
  );
  return [
    "# Settings",
    "",
    "Generated from the declarations in the code by `npm run generate`; do not edit.",
    "",
    "Settings are environment variables. An empty value counts as unset. The name beginning with `HOLDFAST_` wins over",
    "its aliases; two aliases that disagree, and any value that is not allowed, stop the process with exit code 2.",
    "",
    sections.join("\n\n"),
    "",
    "## Names of other systems",
    "",
    "Variables of the systems that Holdfast follows. One that is set and not supported is reported at the start of every",
    "process.",
    "",
    "| variable | status |",
    "|---|---|",
    ...foreignNames().map(([name, status]) => `| \`${name}\` | ${status} |`),
    "",
  ].join("\n");
}

function foreignNames(): [name: string, status: string][] {
  const declared = Object.values(processes).flatMap((settings) => Object.values(settings));
  const aliases = declared.flatMap(({ env, aliases }) =>
    aliases.map((alias): [string, string] => [alias, `another name of \`${env}\``]),
  );
  return [...new Map([...aliases, ...unsupportedNames])].sort(([a], [b]) => (a < b ? -1 : 1));
}

function defaultOf(declared: Setting): string {
  if (declared.defaultText) return declared.defaultText;
  return declared.default === undefined ? "unset" : `\`${String(declared.default)}\``;
}

function errorsPage(): string {
  const rows = Object.entries(errorCatalogue).map(
    ([code, entry]) =>
      `| \`${code}\` | ${entry.status} | ${entry.retryable ? "yes" : "no"} | ${entry.message} | ${entry.nextStep} |`,
  );
  return [
    "# Errors",
    "",
    "Generated from `contracts/src/errors/` by `npm run generate`; do not edit.",
    "",
    "Every error answer is `{code, message, correlation_id, retryable, next_step, details}`, and `runbook` where there is a page",
    "for it. Decide by `code` and `retryable`; the message is for people and may change.",
    "",
    "| code | status | retry | what happened | what to do now |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

function glossaryPage(): string {
  const sections = stateGroups.flatMap(({ heading, field, titles, derived = {} }) => [
    `## ${heading}`,
    "",
    `API: ${field}.`,
    "",
    "| title | API value | meaning |",
    "|---|---|---|",
    ...Object.entries(titles).map(([value, { title, meaning }]) => `| ${title} | \`${value}\` | ${meaning} |`),
    ...Object.values(derived).map(({ title, meaning }) => `| ${title} | – | ${meaning} |`),
    "",
  ]);
  return [
    "# Glossary",
    "",
    "Generated from `contracts/src/words/glossary.ts` and `contracts/src/words/state-titles.ts` by `npm run generate`; do not edit.",
    "",
    "The page and the command line show titles; the API and `--json` use API values, which do not change.",
    "",
    "## Nouns and verbs",
    "",
    "| word | meaning |",
    "|---|---|",
    ...Object.entries(nouns).map(([word, meaning]) => `| ${word} | ${meaning} |`),
    "",
    ...sections,
  ].join("\n");
}
