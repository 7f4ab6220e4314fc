// Who uses a node's identity, decided from heartbeats alone. The server numbers them, and each names the last one that its
// process was answered (`after`). So a process proves that it ran after a number was given out, whatever the network
// delayed, repeated or reordered. Two holders are proved when they ran by turns, A B A B: A B is a restart, and A B A a
// snapshot that was restored. Clocks play no part in it, but for how close together the turns must be.

/** What a heartbeat says about where it comes from. */
export type Machine = {
  instanceId: string;
  bootId: string;
  serial: string | null;
  address: string | null;
  hostname: string | null;
  /** When the process started, by its own clock. */
  startedAt: string | null;
};

/** One line of heartbeats, each sent after the one before was answered. */
export type Holder = Machine & {
  /** The number of its first heartbeat known. */
  id: number;
  /** The newest, and others sent in its place because no answer had come: one of them at most is continued. */
  tips: number[];
  /** What `tips` were sent after. */
  parent: number;
  /** In milliseconds, by the database's clock. */
  firstAt: number;
  lastAt: number;
  /** Its connection was closed after its last heartbeat. */
  ended: boolean;
};

/** Heartbeats of one holder without one of another between them; proved when it goes on from the answer to one of them. */
type Turn = { holder: number; from: number; at: number; proved: boolean };

export type Lineage = {
  holders: Holder[];
  /** The number of the last heartbeat that was reviewed. */
  reviewed: number;
  /** The last one is of that heartbeat. */
  turns: Turn[];
  /** When two holders were proved last, and which. */
  provedAt: number | null;
  pair: [number, number] | null;
};

/** The heartbeat before, whether it was reviewed or not. */
export type Previous = Machine & { number: number; after: number | null; at: number; disconnected: boolean };
export type Contact = Machine & { number: number; after: number; at: number; previous: Previous };

export const noLineage: Lineage = { holders: [], reviewed: 0, turns: [], provedAt: null, pair: null };

const MOST_HOLDERS = 8;
const MOST_TIPS = 8;
const MOST_TURNS = 16;
/** Turns that are further apart prove nothing; a holder that was silent for longer is not expected back. */
const TURNS_WITHIN_MS = 5 * 60_000;

export function addContact(before: Lineage, contact: Contact): Lineage {
  const lineage = catchUp(before, contact.previous);
  const own = lineage.holders.filter(({ instanceId }) => instanceId === contact.instanceId);
  const continued = own.find(({ tips }) => tips.includes(contact.after));
  if (continued) return advance(lineage, continued, { seen: contact, answered: contact.after });
  const repeated = own.find(({ parent }) => parent === contact.after);
  const tips = [...(repeated?.tips ?? []), contact.number].slice(-MOST_TIPS);
  const holder = repeated ? meet({ ...repeated, tips }, contact) : begin(contact);
  return take({ ...lineage, holders: replace(lineage.holders, repeated, [holder]) }, holder, contact);
}

/** Heartbeats that continued the one before were not reviewed: the process of the last one that was has sent them. */
function catchUp(lineage: Lineage, previous: Previous): Lineage {
  const { number, after } = previous;
  // Sent by an agent that does not say what it is sent after.
  if (after === null) return lineage;
  const seen = { ...previous, after };
  const { reviewed } = lineage;
  const last = lineage.holders.find((one) => one.instanceId === seen.instanceId && one.tips.includes(reviewed));
  if (number > reviewed) {
    if (last) return close(advance(lineage, last, { seen, answered: reviewed }), previous);
    const holder = begin(seen);
    const from = after > 0 ? after : number;
    return close(take({ ...lineage, holders: [...lineage.holders, holder] }, holder, seen, from), previous);
  }
  return close(lineage, previous);
}

const close = (lineage: Lineage, { number, disconnected }: Previous): Lineage => ({
  ...lineage,
  holders: lineage.holders.map((one) => (one.tips.includes(number) ? { ...one, ended: disconnected } : one)),
});

type Seen = Machine & { number: number; after: number; at: number };

function begin(seen: Seen): Holder {
  const { number, after, at } = seen;
  return {
    ...machineOf(seen),
    ...{ id: number, tips: [number], parent: after, firstAt: at, lastAt: at, ended: false },
  };
}

/** Its process has read the answer to `answered`, so another one sent whatever goes on from the other tips. */
function advance(lineage: Lineage, holder: Holder, { seen, answered }: { seen: Seen; answered: number }): Lineage {
  const others = holder.tips.filter((tip) => tip !== answered).map((tip) => ({ ...holder, id: tip, tips: [tip] }));
  const advanced = meet({ ...holder, tips: [seen.number], parent: seen.after }, seen);
  const isTaken = others.some(({ id }) => id === holder.id);
  const own = isTaken ? { ...advanced, id: answered } : advanced;
  return take({ ...lineage, holders: replace(lineage.holders, holder, [...others, own]) }, own, seen);
}

/** It is the turn of this holder, and those up to the answer that it goes on from are proved. */
function take(lineage: Lineage, { id }: Holder, { number, after, at }: Seen, from = number): Lineage {
  const turns = lineage.turns.map((one) =>
    one.holder === id && one.from <= after ? { ...one, proved: true } : one,
  );
  if (turns.at(-1)?.holder !== id) turns.push({ holder: id, from, at, proved: from <= after });
  return {
    ...lineage,
    holders: lineage.holders.sort((a, b) => lastOf(a) - lastOf(b)).slice(-MOST_HOLDERS),
    reviewed: number,
    turns: turns.slice(-MOST_TURNS),
  };
}

function meet(holder: Holder, seen: Seen): Holder {
  return { ...holder, ...machineOf(seen), lastAt: seen.at, ended: false };
}

function machineOf({ instanceId, bootId, serial, address, hostname, startedAt }: Machine): Machine {
  return { instanceId, bootId, serial, address, hostname, startedAt };
}

function replace(holders: readonly Holder[], old: Holder | undefined, by: readonly Holder[]): Holder[] {
  return [...holders.filter((one) => one !== old), ...by];
}

const lastOf = ({ tips }: Holder) => Math.max(...tips);

/** Two that ran at the same time, the one known for longer first. */
export function provedHolders({ holders, turns }: Lineage): [Holder, Holder] | undefined {
  const proved = turns.filter((one) => one.proved);
  for (const one of holders) {
    const other = holders.find(({ id }) => id > one.id && isInterleaved(proved, one.id, id));
    if (other) return [one, other];
  }
  return undefined;
}

/** Whether the last turns of these two were A B A B, close together. */
function isInterleaved(proved: readonly Turn[], one: number, other: number): boolean {
  const own = proved.filter(({ holder }) => holder === one || holder === other);
  const [, second, , last] = own.filter(({ holder }, index) => holder !== own[index - 1]?.holder).slice(-4);
  return second !== undefined && last !== undefined && last.at - second.at <= TURNS_WITHIN_MS;
}

/** The two that were proved last, the one known for longer first. */
export function lastProved({ holders, pair }: Lineage): [Holder, Holder] | undefined {
  const [one, other] = holders.filter(({ id }) => pair?.includes(id)).sort((a, b) => a.id - b.id);
  return one && other && [one, other];
}

/** The next proof needs new turns. */
export function afterProof(lineage: Lineage, [one, other]: readonly [Holder, Holder], at: number): Lineage {
  return { ...lineage, turns: lineage.turns.slice(-1), provedAt: at, pair: [one.id, other.id] };
}

/** Whether the process of the last heartbeat should send another one now, to show that it has read the answer. */
export function shouldConfirm(lineage: Lineage): boolean {
  const holder = currentOf(lineage);
  if (!holder) return false;
  if (holder.tips.length > 1) return true;
  return lineage.turns.at(-1)?.proved === false && rivalsOf(lineage, holder).length > 0;
}

/** It was proved a while ago, and is acted upon. */
export function isKnown(lineage: Lineage): boolean {
  const { provedAt } = lineage;
  return provedAt !== null && (currentOf(lineage)?.lastAt ?? 0) - provedAt < KNOWN_FOR_MS;
}

const KNOWN_FOR_MS = 10 * 60_000;

const currentOf = ({ holders, turns }: Lineage) => holders.find(({ id }) => id === turns.at(-1)?.holder);

/** Other holders, whose end was not noticed, and which may come back. */
function rivalsOf({ holders }: Lineage, { id, lastAt }: Holder): Holder[] {
  return holders.filter((one) => one.id !== id && !one.ended && lastAt - one.lastAt < TURNS_WITHIN_MS);
}
