// What is wrong with a document, and where.

export type Path = readonly (string | number)[];

/** About the action of a connector. */
const connectorProblems = ["unknown_connector", "unknown_action", "connector_input", "secret_missing"] as const;
type ConnectorProblem = (typeof connectorProblems)[number];
export const isConnectorProblem = (code: ProblemCode) => connectorProblems.some((one) => one === code);

export type ProblemCode =
  | "too_large"
  | "syntax"
  | "schema"
  | "unknown_node"
  | "wrong_port"
  | "duplicate_edge"
  | "cycle"
  | "unreachable"
  | "execution_mode"
  | ConnectorProblem
  | "schedule"
  | "timezone"
  | "several_webhooks"
  | "same_trigger"
  | "expression"
  | "unknown_reference"
  | "not_before"
  | "forbidden_function";

/** Before its place in the text is known. `offset`: within the text at `path`, in characters. */
export type Finding = { code: ProblemCode; message: string; path: Path; offset?: number };

/** Lines and columns count from 1. */
export type Problem = { code: ProblemCode; message: string; path: string; line: number; column: number };

/** As people write it: `nodes.fetch.after[0]`. */
export function pathText(path: Path): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join("");
}
