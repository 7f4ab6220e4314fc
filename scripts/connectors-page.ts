// The reference page of the connectors, from their schemas and the catalogue of their failures.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { connectorFailures } from "@holdfast/contracts/execution/connector-failures";
import { z } from "zod";
import type { Action, Connector } from "../workflows/src/connectors/connector.ts";

/** `root`: of this checkout, or of another one. */
export async function connectorsPage(root: string): Promise<string> {
  const path = pathToFileURL(join(root, "workflows/src/connectors/all.ts")).href;
  const connectors = Object.values((await import(path)) as Record<string, Connector>);
  return [
    "# Connectors",
    "",
    "Generated from `workflows/src/connectors/` by `npm run generate`; do not edit.",
    "",
    "Actions of `connector.action` steps. With `execution.mode: cloud` (default) the worker runs them: it reaches public addresses over TLS, and what",
    "`HOLDFAST_NOTIFY_ALLOW_PRIVATE` lists. With `execution.mode: node` an agent does that serves the connector (`holdfast agent connect --connectors …`).",
    "`secret` of the step is the name of a secret of the organization. Redirects are not followed. `holdfast connector try` shows what would be sent.",
    "",
    ...connectors.flatMap(({ name, title, summary, actions }) => [
      `## ${title} (\`${name}\`)`,
      "",
      `${summary}.`,
      "",
      ...Object.entries(actions).flatMap(([action, declared]) => actionSection(`${name} ${action}`, declared)),
    ]),
    "## Failures",
    "",
    "| code | retry | what happened | what to do now |",
    "|---|---|---|---|",
    ...Object.entries(connectorFailures).map(
      ([code, { retryable, message, nextStep }]) =>
        `| \`${code}\` | ${retryable ? "yes" : "no"} | ${message} | ${nextStep} |`,
    ),
    "",
    "An action that is `at-most-once` is not repeated when it may have had its effect, whatever the failure.",
    "",
  ].join("\n");
}

function actionSection(name: string, { summary, effect, secret, input, output }: Action): string[] {
  return [
    `### \`${name}\``,
    "",
    `${summary}. Effect: ${effect}.${secret === null ? "" : ` Secret${secret.required ? "" : " (optional)"}: ${secret.what}.`}`,
    "",
    ...fieldTable("input", input),
    ...fieldTable("output", output),
  ];
}

type Described = {
  type?: string;
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Described>;
  required?: string[];
};

function fieldTable(what: string, schema: z.ZodType): string[] {
  const read = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Described;
  if (!read.properties) return [`${what}: ${read.description ?? "any value"}`, ""];
  const rows = Object.entries(read.properties).map(([field, { type, enum: values, description = "" }]) => {
    const kind = values ? values.map((value) => `\`${value}\``).join(", ") : (type ?? "any");
    return `| \`${field}\` | ${kind} | ${read.required?.includes(field) ? "yes" : "no"} | ${description} |`;
  });
  return [`| ${what} | type | required | |`, "|---|---|---|---|", ...rows, ""];
}
