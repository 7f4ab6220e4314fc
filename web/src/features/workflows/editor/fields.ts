// Which fields of a step the panel shows, by its type. All of them can be written in the text, where the schema explains the rest.

import type { Node } from "@holdfast/workflows/document/schema";

export type FieldSpec = {
  path: readonly string[];
  label: string;
  hint?: string;
  placeholder?: string;
} & ({ kind: "text" | "area" | "value" | "count" } | { kind: "choice"; options: readonly string[]; none: string });

const text = (path: string, label: string, more: { hint?: string; placeholder?: string } = {}): FieldSpec => ({
  ...{ kind: "text", path: path.split("."), label },
  ...more,
});
const choice = (path: string, label: string, options: readonly string[], none: string): FieldSpec => ({
  ...{ kind: "choice", path: path.split("."), label, options, none },
});
const expressions = "Text may contain ${{ expressions }}, such as ${{ nodes.fetch.output.body }}.";

const timing: FieldSpec[] = [
  text("timeout", "Timeout of an attempt", { placeholder: "60s" }),
  { kind: "count", path: ["retry", "attempts"], label: "Attempts", hint: "With the first one." },
  text("secret", "Secret", { hint: "The name of a secret of the organization." }),
];

export const fieldSpecs: Record<Node["type"], readonly FieldSpec[]> = {
  "agent.execute": [
    { kind: "area", path: ["script"], label: "Script", hint: expressions },
    choice("shell", "Shell", ["sh", "bash"], "sh"),
    ...timing,
  ],
  "http.request": [
    choice("method", "Method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "GET"),
    text("url", "URL", { hint: expressions }),
    { kind: "value", path: ["headers"], label: "Headers", placeholder: '{ "accept": "application/json" }' },
    { kind: "value", path: ["body"], label: "Body" },
    ...timing,
  ],
  "connector.action": [
    text("connector", "Connector"),
    text("action", "Action"),
    { kind: "value", path: ["input"], label: "Input", hint: expressions },
    ...timing,
  ],
  condition: [text("if", "If", { hint: "A JSONata expression.", placeholder: "nodes.fetch.output.status = 200" })],
  parallel: [],
  join: [choice("mode", "Waits for", ["all", "any"], "all")],
  wait: [],
};

/** Steps that may run on an agent. */
export const runsOnAgents = (type: string) => type === "agent.execute" || type === "connector.action";
