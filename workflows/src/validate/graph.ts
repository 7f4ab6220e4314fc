// Whether the edges of a workflow make sense: known nodes, possible ports, no cycle, and no node that can never run.

import { type Edge, edgeOf, edgesInto, portsOf } from "../document/edges.ts";
import type { Finding } from "../document/problem.ts";
import type { Node, WorkflowDocument } from "../document/schema.ts";

export function checkGraph(document: WorkflowDocument): Finding[] {
  const findings = Object.entries(document.nodes).flatMap(([id, node]) => checkEdges(document, id, node));
  const cycle = findCycle(document);
  if (cycle) findings.push(cycle);
  // What depends on a broken graph is not judged.
  return findings.length > 0 ? findings : findUnreachable(document);
}

function checkEdges(document: WorkflowDocument, id: string, node: Node): Finding[] {
  return (node.after ?? []).flatMap((text, index): Finding[] => {
    const path = ["nodes", id, "after", index];
    const { from, port } = edgeOf(text);
    const source = Object.hasOwn(document.nodes, from) ? document.nodes[from] : undefined;
    if (!source) return [{ code: "unknown_node", message: `There is no node ${from}.`, path }];
    const possible = portsOf(source);
    if (!possible.includes(port)) {
      const allowed = possible.map((one) => (one === "succeeded" ? from : `${from}.${one}`)).join(", ");
      return [{ code: "wrong_port", message: `A ${source.type} node has no ${text}. Use ${allowed}.`, path }];
    }
    if (node.after?.indexOf(text) !== index) {
      return [{ code: "duplicate_edge", message: `${text} is listed twice.`, path }];
    }
    return [];
  });
}

function findCycle({ nodes }: WorkflowDocument): Finding | undefined {
  const done = new Set<string>();
  const way: string[] = [];
  const from = (id: string): string[] | undefined => {
    const begin = way.indexOf(id);
    if (begin !== -1) return [...way.slice(begin), id];
    if (done.has(id) || !nodes[id]) return undefined;
    way.push(id);
    for (const edge of edgesInto(nodes[id])) {
      const cycle = from(edge.from);
      if (cycle) return cycle;
    }
    way.pop();
    done.add(id);
    return undefined;
  };
  for (const id of Object.keys(nodes)) {
    const cycle = from(id);
    const [first = id] = cycle ?? [];
    // Edges lead from a node to what it waits for: read backwards, it is the order in which nodes would run.
    if (cycle) {
      const message = `These nodes wait for each other: ${cycle.toReversed().join(" → ")}.`;
      return { code: "cycle", message, path: ["nodes", first, "after"] };
    }
  }
  return undefined;
}

/** What must have happened before a node starts, as `id.port`; undefined: it can never start. */
type Needs = ReadonlySet<string> | undefined;

const keyOf = ({ from, port }: Edge) => `${from}.${port}`;

function findUnreachable({ nodes }: WorkflowDocument): Finding[] {
  const known = new Map<string, Needs>();
  const needsOf = (id: string): Needs => {
    if (known.has(id)) return known.get(id);
    const node = nodes[id] as Node;
    const needs = combine(
      node,
      edgesInto(node).map((edge) => withEdge(needsOf(edge.from), edge)),
    );
    known.set(id, needs);
    return needs;
  };
  const never = Object.keys(nodes).filter((id) => needsOf(id) === undefined);
  // Named once, where it begins: what follows a node that can never run cannot run either.
  const first = never.filter((id) => !edgesInto(nodes[id] as Node).every(({ from }) => never.includes(from)));
  return first.map((id) => ({
    code: "unreachable",
    message: `${id} can never run: it waits for outcomes that exclude each other.`,
    path: ["nodes", id, "after"],
  }));
}

function withEdge(needs: Needs, edge: Edge): Needs {
  return needs && consistent(new Set([...needs, keyOf(edge)]));
}

/** A join of all needs what each edge needs; every other node only what all of its possible edges have in common. */
function combine(node: Node, edges: readonly Needs[]): Needs {
  if (edges.length === 0) return new Set();
  if (node.type === "join" && node.mode !== "any") {
    if (edges.some((needs) => needs === undefined)) return undefined;
    return consistent(new Set(edges.flatMap((needs) => [...(needs ?? [])])));
  }
  const possible = edges.filter((needs) => needs !== undefined);
  const [first, ...others] = possible;
  return first && new Set([...first].filter((need) => others.every((needs) => needs.has(need))));
}

/** A node ends in one way only. */
function consistent(needs: ReadonlySet<string>): Needs {
  const sources = [...needs].map((need) => need.slice(0, need.lastIndexOf(".")));
  return new Set(sources).size === sources.length ? needs : undefined;
}
