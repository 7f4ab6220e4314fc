// One place writes each state. Finds, in the text of every statement of the product, the columns that INSERT and UPDATE
// write, and compares the files that write a state with the ones that may.

import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { executionStates } from "@holdfast/contracts/endpoints/executions";
import { taskStatuses } from "@holdfast/contracts/endpoints/tasks";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const product = [
  "contracts",
  "kit",
  "service",
  "tasks",
  "control-plane",
  "gateway",
  "node-agent",
  "workflows",
  "cli",
];

const sources = product
  .flatMap((folder) =>
    ts.sys.readDirectory(join(root, folder), [".ts", ".mjs"], ["**/node_modules", "**/dist", "**/test"]),
  )
  .map((path) => relative(root, path))
  .filter((path) => !path.endsWith(".test.ts"));

/** Every template and every string, with `?` for what is inserted into it. */
function textsOf(path: string, source: string): string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) texts.push(node.text);
    if (ts.isTemplateExpression(node)) {
      texts.push([node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join(" ? "));
    }
    node.forEachChild(visit);
  };
  visit(ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true));
  return texts;
}

/** `columns` is the text in which the columns stand: the SET list, or the list after the table. */
type Write = { table: string; columns: string };

function writesIn(text: string): Write[] {
  const updates = text.matchAll(/\bUPDATE\s+(?:ONLY\s+)?([\w."?]+)(?:\s+(?:AS\s+)?\w+)?\s+SET\b/gi);
  const upserts = text.matchAll(/\bINSERT\s+INTO\s+([\w."?]+)(?:(?!\bINSERT\b).)*?\bDO\s+UPDATE\s+SET\b/gis);
  const inserts = text.matchAll(/\bINSERT\s+INTO\s+([\w."?]+)(?:\s+AS\s+\w+)?\s*\(([^)]*)\)/gi);
  const sets = [...updates, ...upserts].map((match) => [
    match[1],
    setList(text.slice(match.index + match[0].length)),
  ]);
  return [...sets, ...[...inserts].map((match) => [match[1], match[2]])].map(([table = "", columns = ""]) => ({
    table: table.replaceAll('"', "").replace(/^holdfast\./, ""),
    columns,
  }));
}

/** Up to the clause behind it, or the end of the parentheses around the statement. */
function setList(text: string): string {
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/[()]|\b(?:FROM|WHERE|RETURNING)\b/gi)) {
    if (token === "(") depth += 1;
    else if (token === ")") depth -= 1;
    if (depth < 0 || (depth === 0 && /\w/.test(token))) return text.slice(0, index);
  }
  return text;
}

const writesColumn = ({ columns }: Write, column: string) =>
  new RegExp(`(^|[\\s,(])"?${column}"?\\s*(=|,|$|\\))`, "i").test(columns);

const texts = new Map(sources.map((path) => [path, textsOf(path, readFileSync(join(root, path), "utf8"))]));
const writes = new Map([...texts].map(([path, its]) => [path, its.flatMap(writesIn)]));

const filesThatWrite = (isMeant: (write: Write) => boolean) =>
  [...writes].filter(([, its]) => its.some(isMeant)).map(([path]) => path);

const writersOf = (table: string, column: string) =>
  filesThatWrite((write) => write.table === table && writesColumn(write, column));

describe("what the statements of a text write", () => {
  const writesStatusOfTask = (text: string) =>
    writesIn(text).some((write) => write.table === "tasks" && writesColumn(write, "status"));

  it.each([
    "UPDATE tasks SET status = 'queued'",
    'update "tasks" as t set phase = NULL,\n  "status" = ? WHERE id = ?',
    "WITH a AS (UPDATE nodes SET name = ?) UPDATE holdfast.tasks t SET (status, phase) = (?, ?)",
    "INSERT INTO tasks (id, status) SELECT ?",
    "UPDATE tasks SET phase = (SELECT phase FROM old WHERE id = ?), status = ? WHERE id = ?",
    "INSERT INTO tasks AS t (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET status = ?",
  ])("finds the status in %s", (text) => {
    expect(writesStatusOfTask(text)).toBe(true);
  });

  it.each([
    "SELECT status FROM tasks WHERE status = 'queued'",
    "UPDATE tasks SET lease_until = now() WHERE status = ?",
    "WITH a AS (UPDATE tasks SET phase = ?) UPDATE nodes SET status = ?",
    "UPDATE nodes SET status = ?",
    "INSERT INTO tasks (id, lease_until) VALUES (?, ?)",
  ])("finds none in %s", (text) => {
    expect(writesStatusOfTask(text)).toBe(false);
  });
});

describe("a state", () => {
  it("is looked for in statements that name their tables", () => {
    expect(sources.length).toBeGreaterThan(300);
    const hidden = filesThatWrite(({ table }) => table.includes("?"));
    expect(hidden).toEqual([]);
  });

  it("TASK-06 of a task is written by the statements of its transition table only", () => {
    const folder = "control-plane/src/tasks/transitions";
    expect(writersOf("tasks", "status")).toEqual(
      ["accept-results", "cancel", "create", "deliver", "expire"].map((name) => `${folder}/${name}.ts`),
    );
    for (const column of ["generation", "lease_until", "reported", "finished_at"]) {
      for (const path of writersOf("tasks", column)) expect(path).toContain(`${folder}/`);
    }
  });

  it("TASK-06 of a task is named in no statement: what depends on it comes from the table", () => {
    const named = new RegExp(`'(${taskStatuses.join("|")})'`);
    const ofTasks = [...texts].filter(([path]) => path.startsWith("control-plane/src/tasks/"));
    expect(ofTasks.length).toBeGreaterThan(10);
    const naming = ofTasks.filter(([, its]) => its.some((text) => named.test(text))).map(([path]) => path);
    expect(naming).toEqual([]);
  });

  it("EXEC-02 of an execution is written by the statements of its transition table only", () => {
    const folder = "control-plane/src/executions/transitions";
    expect(writersOf("executions", "status")).toEqual(
      ["accept-results", "again", "cancel", "create", "decline", "expire", "hold", "place", "revoke"].map(
        (name) => `${folder}/${name}.ts`,
      ),
    );
    for (const column of ["generation", "agent_id", "session_id", "lease_until", "reported", "finished_at"]) {
      for (const path of writersOf("executions", column)) expect(path).toContain(`${folder}/`);
    }
  });

  it("EXEC-02 of an execution is named in no statement: what depends on it comes from the table", () => {
    const named = new RegExp(
      `'(${executionStates.filter((one) => !["succeeded", "failed"].includes(one)).join("|")})'`,
    );
    const ofExecutions = [...texts].filter(([path]) => path.startsWith("control-plane/src/executions/"));
    expect(ofExecutions.length).toBeGreaterThan(10);
    const naming = ofExecutions.filter(([, its]) => its.some((text) => named.test(text))).map(([path]) => path);
    // The reason that an agent is given to stop.
    expect(naming).toEqual(["control-plane/src/executions/transitions/hold.ts"]);
  });

  it("EXEC-03 of what an agent has is counted by the statements that give and end requests, and corrected by one more", () => {
    const writers = writersOf("execution_agents", "in_flight");
    expect(writers).toEqual([
      "control-plane/src/agents/queries.ts",
      "control-plane/src/executions/recount.ts",
      "control-plane/src/executions/transitions/room.ts",
    ]);
  });

  it("FLOW-02 of a run is written by the statements of its transition table only", () => {
    const folder = "control-plane/src/workflows/runs/transitions";
    expect(writersOf("workflow_runs", "status")).toEqual(
      ["append", "claim", "create", "retry"].map((name) => `${folder}/${name}.ts`),
    );
    for (const column of ["cursor", "last_seq", "claim", "finished_at"]) {
      for (const path of writersOf("workflow_runs", column)) expect(path).toContain(`${folder}/`);
    }
  });

  it("VM-04 of a lease is written by the statements of its transition table only", () => {
    const folder = "control-plane/src/leases/transitions";
    expect(writersOf("vm_leases", "status")).toEqual(
      ["apply", "create", "place"].map((name) => `${folder}/${name}.ts`),
    );
    for (const column of [
      "generation",
      "host_id",
      "vm_id",
      "launch_task_id",
      "terminate_task_id",
      "finished_at",
    ]) {
      for (const path of writersOf("vm_leases", column)) expect(path).toContain(`${folder}/`);
    }
  });

  it("VM-02 of what a host has is counted by the statements that give and end leases, and corrected by one more", () => {
    expect(writersOf("vm_hosts", "reserved_vcpus").toSorted()).toEqual([
      "control-plane/src/leases/transitions/apply.ts",
      "control-plane/src/leases/transitions/place.ts",
      "control-plane/src/leases/upkeep.ts",
    ]);
  });

  // By folder: within it there is one such file, wherever it stands.
  it.each([
    { table: "allocations", column: "status", folder: "control-plane/src/allocations" },
    { table: "terminal_sessions", column: "state", folder: "control-plane/src/terminals" },
    { table: "nodes", column: "status", folder: "control-plane/src/nodes" },
    { table: "nodes", column: "revoked_at", folder: "control-plane/src/nodes" },
  ])("of $table is written in one file: $column", ({ table, column, folder }) => {
    expect(writersOf(table, column)).toEqual([expect.stringContaining(`${folder}/`)]);
  });
});
