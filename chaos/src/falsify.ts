// The lab's self-test: makes one field of the evidence false, and then the next. Whatever passes the judgement that way
// is not judged at all. Pure.

import { uuidv7 } from "@holdfast/kit/uuid";

export type Falsified<Evidence> = { field: string; evidence: Evidence };

/** Every field of the evidence in turn, each made false in every way that its kind allows. */
export function falsify<Evidence>(evidence: Evidence): Falsified<Evidence>[] {
  return pathsOf(evidence).flatMap((path) =>
    lies(at(evidence, path)).map((lie) => {
      const copy = structuredClone(evidence);
      const parent = at(copy, path.slice(0, -1)) as Record<string, unknown>;
      parent[path.at(-1) ?? ""] = lie;
      return { field: `${path.join(".")} = ${JSON.stringify(lie)?.slice(0, 60)}`, evidence: copy };
    }),
  );
}

/** Fields that could be false without anybody noticing. */
export function blindSpots<Evidence>(
  judged: (evidence: Evidence) => string[],
  falsified: readonly Falsified<Evidence>[],
): string[] {
  return falsified.filter(({ evidence }) => judged(evidence).length === 0).map(({ field }) => field);
}

function lies(value: unknown): unknown[] {
  if (value === null) return ["nonsense"];
  if (typeof value === "number") return [value + 1_000_000, value - 1_000_000];
  if (typeof value === "string") return [isId(value) ? uuidv7() : "nonsense", null];
  if (Array.isArray(value)) return [[...value, "nonsense"], ...value.map((_, index) => value.toSpliced(index, 1))];
  return [null];
}

/** The whole and its parts, where a part can be missing; the evidence itself is always there. */
function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  const isParent = value !== null && typeof value === "object";
  const below = isParent ? Object.entries(value).flatMap(([name, one]) => pathsOf(one, [...path, name])) : [];
  const isOptional = path.at(-2) === "found";
  return [...(!isParent || Array.isArray(value) || isOptional ? [[...path]] : []), ...below];
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], value);
}

function isId(text: string): boolean {
  return /^[0-9a-f-]{36}$/.test(text);
}
