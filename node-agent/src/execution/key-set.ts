// The keys that dispatches must be signed with. The first set comes with pairing, or, for credentials of another system, with
// the first connection. Later sets are accepted only as a chain, each signed with the one before it (ADR 15).

import type { SignedKeySet } from "@holdfast/contracts/node/trust";
import { keyringOf, type VerifierKeyring } from "@holdfast/kit/detached-jws";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { acceptKeySets, type KeySet } from "../identity/accept-trust.ts";
import type { Log } from "../log.ts";
import { PinnedKeySet } from "./credentials.generated.ts";

export type PinnedKeys = {
  /** Undefined: none yet. */
  version(): number | undefined;
  keyring(): VerifierKeyring;
  /** As of a `welcome`. */
  offered(sets: readonly unknown[]): void;
};

export type KeyDecision = { pin?: KeySet; refused?: string; isFirst?: true };

/** Pure. Nothing in `offered` is trusted before its signature was verified, but for the very first set. */
export function decideKeys(present: KeySet | undefined, offered: readonly unknown[]): KeyDecision {
  if (offered.length === 0) return {};
  if (present === undefined) {
    const newest = offered.at(-1) as Partial<SignedKeySet>;
    const checked = PinnedKeySet.safeParse({ version: newest?.version, keys: newest?.content?.keys });
    return checked.success
      ? { pin: checked.data as KeySet, isFirst: true }
      : { refused: "the first set of signing keys has a format that this agent does not support" };
  }
  try {
    const verdict = acceptKeySets(present, offered as SignedKeySet[]);
    if (verdict === undefined) return {};
    return "accepted" in verdict ? { pin: verdict.accepted } : { refused: verdict.refused };
  } catch {
    return { refused: "a set of signing keys has a format that this agent does not support" };
  }
}

/** `file`: where the newest accepted set is kept; undefined keeps it in memory. `paired`: the set of the pairing. */
export function openPinnedKeys(options: {
  file: string | undefined;
  paired: KeySet | undefined;
  log: Pick<Log, "info" | "warn">;
}): PinnedKeys {
  const { file, paired, log } = options;
  const kept = file === undefined ? undefined : readKept(file);
  let present = kept && (!paired || kept.version >= paired.version) ? kept : paired;
  let ring = keyringOf(present?.keys ?? []);

  return {
    version: () => present?.version,
    keyring: () => ring,
    offered(sets) {
      const { pin, refused, isFirst } = decideKeys(present, sets);
      if (refused !== undefined) log.warn("new signing keys were refused", { detail: refused });
      if (!pin) return;
      present = pin;
      ring = keyringOf(pin.keys);
      const kids = pin.keys.map(({ kid }) => kid);
      if (isFirst) {
        log.warn(
          "pinned the signing keys of the first connection: the credentials have none. From now on only dispatches " +
            "signed with these keys, or with keys signed by them, are run",
          { version: pin.version, kids },
        );
      } else log.info("signing keys replaced by a newer set", { version: pin.version, kids });
      try {
        if (file !== undefined) keep(file, pin);
      } catch (error) {
        log.warn("the newest signing keys could not be stored; they are requested again after a restart", {
          error,
        });
      }
    },
  };
}

function keep(file: string, set: KeySet): void {
  writeFileDurably(file, `${JSON.stringify(set, null, 2)}\n`, 0o600);
}

function readKept(file: string): KeySet | undefined {
  const text = readFileIfPresent(file);
  if (text === undefined) return undefined;
  try {
    return PinnedKeySet.parse(JSON.parse(text)) as KeySet;
  } catch {
    throw new UsageError(
      `${file} does not contain the pinned signing keys. Restore it, or delete it: the keys of the pairing are used then.`,
    );
  }
}
