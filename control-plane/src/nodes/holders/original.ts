// Which of two machines with one identity is probably the original, in words. A recommendation: an operator decides.

import { type Holder, type Lineage, lastProved } from "./lineage.ts";

export type Recommendation = {
  /** The id of the holder; null: the evidence does not decide it. */
  recommended: number | null;
  why: string[];
};

/** `sequences`: of the recovery tokens that the two presented last, by the ids of the holders, where they are known. */
export function recommendOriginal(
  lineage: Lineage,
  sequences: ReadonlyMap<number, number> = new Map(),
): Recommendation | undefined {
  const pair = lastProved(lineage);
  if (!pair) return undefined;
  const before = lineage.holders.filter(({ id }) => id < pair[0].id).at(-1);
  const found = [
    bySequence(pair, sequences),
    byFirstContact(pair),
    before && byLikeness(pair, before, "boot_id", ({ bootId }) => bootId),
    before && byLikeness(pair, before, "address", ({ address }) => address),
    before && byLikeness(pair, before, "hostname", ({ hostname }) => hostname),
  ].filter((one) => one !== undefined);
  const why = found.map(({ text }) => text);
  const recommended = new Set(found.map(({ holder }) => holder));
  const [only] = recommended;
  if (only === undefined) return { recommended: null, why: ["Nothing tells them apart. Look at both hosts."] };
  if (recommended.size > 1)
    return { recommended: null, why: [...why, "This is contradictory. Look at both hosts."] };
  return { recommended: only, why };
}

type Found = { holder: number; text: string } | undefined;
type Pair = readonly [Holder, Holder];

function bySequence([one, other]: Pair, sequences: ReadonlyMap<number, number>): Found {
  const [a, b] = [sequences.get(one.id), sequences.get(other.id)];
  if (a === undefined || b === undefined || a === b) return undefined;
  const [newer, number, older] = a > b ? [one, a, b] : [other, b, a];
  return {
    holder: newer.id,
    text: `${nameOf(newer)} has recovery token ${number}, the other one the older token ${older}.`,
  };
}

/** The copy appears later, unless both were forked from the same moment. */
function byFirstContact([one, other]: Pair): Found {
  if (one.firstAt >= other.firstAt) return undefined;
  return {
    holder: one.id,
    text: `${nameOf(one)} was known before the other one appeared ${timeOf(other.firstAt)}.`,
  };
}

/** Exactly one of the two is as the node was before either of them. */
function byLikeness(
  pair: Pair,
  before: Holder,
  what: keyof typeof words,
  read: (one: Holder) => string | null,
): Found {
  const value = read(before);
  const alike = value === null ? [] : pair.filter((one) => read(one) === value);
  const [only] = alike;
  if (!only || alike.length > 1) return undefined;
  return { holder: only.id, text: `${nameOf(only)} has ${words[what]} that the node had before: ${value}.` };
}

const words = { boot_id: "the boot id", address: "the address", hostname: "the host name" } as const;
const timeOf = (ms: number) => `at ${new Date(ms).toISOString()}`;
const nameOf = ({ id, hostname, address }: Holder) =>
  `Holder ${id} (${[hostname, address].filter(Boolean).join(", ") || "unknown host"})`;
