// The key-encryption keys that a process has: the one it seals with, and while that is being replaced, a second one that it opens, too.

export type Kek = { id: string; key: Buffer };
export type Keks = { current: Kek; previous?: Kek | undefined };

/** Something is sealed under a KEK that this process does not have. */
export class KekMissing extends Error {
  override name = "KekMissing";
  readonly kekId: string;
  constructor(kekId: string, { current, previous }: Keks) {
    const known = [current, previous].flatMap((kek) => (kek ? [`"${kek.id}"`] : [])).join(" and ");
    super(`sealed under the KEK "${kekId}", but this process has ${known}`);
    this.kekId = kekId;
  }
}

export function kekNamed(keks: Keks, id: string): Kek {
  if (id === keks.current.id) return keks.current;
  if (id === keks.previous?.id) return keks.previous;
  throw new KekMissing(id, keks);
}

export const kekIdsOf = ({ current, previous }: Keks): string[] => [
  current.id,
  ...(previous ? [previous.id] : []),
];
