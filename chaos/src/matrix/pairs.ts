// Double faults: two rows at once that have nothing to do with each other. Both causes are listed, the worse one first.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import type { KeyRow } from "./answer-key.ts";
import type { RowAt } from "./row.ts";
import { allRows } from "./rows/all.ts";

/** The first one is the headline. */
export const pairs: readonly (readonly [string, string])[] = [
  ["D14", "N08"],
  ["D13", "N10"],
  ["N08", "N10"],
  ["D26", "N11"],
  ["N04", "N11"],
  ["D08", "N10"],
  ["N05", "N10"],
  ["N08", "N06"],
  ["N02", "N11"],
  ["D11", "N10"],
];

export const nameOf = (pair: readonly [string, string]) => pair.join("+");

export type PairResult = {
  rows: readonly [string, string];
  ok: boolean;
  /** As they were listed. */
  causes: string[];
  seconds: number | null;
  how: string;
  problems: string[];
};

export function rowsOf(names: readonly [string, string]): [RowAt<"lab">, RowAt<"lab">] {
  const [first, second] = names.map((name) => allRows.find(({ row }) => row === name));
  if (first?.at !== "lab" || second?.at !== "lab")
    throw new Error(`${names.join(" and ")} are no two rows of a lab`);
  return [first, second];
}

/** Every difference; none: both causes are listed in the right order, and nothing else is. */
export function pairDifferences(keys: readonly KeyRow[], { causes }: Pick<Explanation, "causes">): string[] {
  const listed = causes.map(({ reason }) => reason);
  const wanted = keys.map(({ reason }) => reason);
  const answers = keys.flatMap(({ reason, owner, next_action, severity }) => {
    const cause = causes.find((one) => one.reason === reason);
    const same = cause?.owner_id === owner && cause.next_action === next_action && cause.severity === severity;
    return !cause || same ? [] : [`${reason} is answered otherwise than alone`];
  });
  return [
    ...(listed.join() === wanted.join()
      ? []
      : [`the causes are ${listed.join(", ")}; expected ${wanted.join(", ")}`]),
    ...answers,
  ];
}
