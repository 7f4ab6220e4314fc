// What is different between two documents, by their structure: the order of fields, comments and the format do not matter.

import { type Path, pathText } from "./problem.ts";
import type { WorkflowDocument } from "./schema.ts";

export type Change =
  | { kind: "added"; path: string; after: unknown }
  | { kind: "removed"; path: string; before: unknown }
  | { kind: "changed"; path: string; before: unknown; after: unknown };

/** Nodes that only one has are one change each; within nodes that both have, each field is. */
export function diffWorkflows(before: WorkflowDocument, after: WorkflowDocument): Change[] {
  return diffValues(before, after, []);
}

function diffValues(before: unknown, after: unknown, path: Path): Change[] {
  if (isSame(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
    return keys.flatMap((key) => diffField(before, after, [...path, key]));
  }
  return [{ kind: "changed", path: pathText(path), before, after }];
}

type Fields = Record<string, unknown>;

function diffField(before: Fields, after: Fields, path: Path): Change[] {
  const key = String(path.at(-1));
  const text = pathText(path);
  if (!Object.hasOwn(before, key)) return [{ kind: "added", path: text, after: after[key] }];
  if (!Object.hasOwn(after, key)) return [{ kind: "removed", path: text, before: before[key] }];
  return diffValues(before[key], after[key], path);
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Of JSON: the order of fields does not matter, that of items does. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}
