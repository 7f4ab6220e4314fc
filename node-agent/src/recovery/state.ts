// What an agent must remember of its recovery, whatever else is lost: the newest token, the key that a token was sent
// with, and a new identity until it is in the ordinary files. One value, replaced as a whole.

import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { Trust } from "../identity/accept-trust.ts";
import { type Identity, parseIdentity } from "../identity/identity-file.ts";

export type RecoveryState = {
  node_id: string;
  /** The one with the highest number that the server sent. */
  token: RecoveryToken | null;
  /** A token that was sent, or is about to be, with its key: it works with this key only. */
  sent: { token: RecoveryToken; key: string } | null;
  /** Key and chain, until they are in the ordinary files. */
  recovered: { identity: string; trust: Trust } | null;
  /** The serial number of a recovered certificate before the first heartbeat with it. */
  unproved: string | null;
  /** Recovered certificates that were rejected, one after the other, and until when (Unix ms) no other one is requested. */
  rejected: { count: number; until: number } | null;
};

export type Recovered = { identity: Identity; trust: Trust };

/** Keeps the state: in a file that survives a full disk, or in memory. */
export type RecoveryStore = {
  read(): RecoveryState;
  /** Stored when it returns. Throws a HostProblem when it could not be; the state before it is kept then. */
  write(state: RecoveryState): void;
};

export function emptyState(nodeId: string): RecoveryState {
  return { node_id: nodeId, token: null, sent: null, recovered: null, unproved: null, rejected: null };
}

/** Empty if it is not readable, or of another node that this machine was. */
export function parseState(text: string | undefined, nodeId: string): RecoveryState {
  const empty = emptyState(nodeId);
  try {
    const found = JSON.parse(text ?? "null") as Partial<RecoveryState> | null;
    return found?.node_id === nodeId ? { ...empty, ...found } : empty;
  } catch {
    return empty;
  }
}

/** Undefined for whatever is not a token. A lower number never replaces a higher one. */
export function newestToken(held: RecoveryToken | null, offered: unknown): RecoveryToken | undefined {
  if (!isToken(offered) || (held !== null && offered.seq <= held.seq)) return undefined;
  const { token, seq, profile, issued_at, expires_at } = offered;
  return { token, seq, profile, issued_at, expires_at };
}

function isToken(value: unknown): value is RecoveryToken {
  const { token, seq, profile, issued_at, expires_at } = (value ?? {}) as Partial<RecoveryToken>;
  return (
    typeof token === "string" &&
    Number.isSafeInteger(seq) &&
    (seq ?? 0) > 0 &&
    typeof profile === "string" &&
    !Number.isNaN(Date.parse(issued_at ?? "")) &&
    !Number.isNaN(Date.parse(expires_at ?? ""))
  );
}

/** Undefined if there is none, or it cannot be read. */
export function recoveredIn({ recovered }: RecoveryState): Recovered | undefined {
  if (recovered === null) return undefined;
  try {
    return { identity: parseIdentity(recovered.identity, "recovery.bin"), trust: recovered.trust };
  } catch {
    return undefined;
  }
}

export function storable({ identity, trust }: Recovered): NonNullable<RecoveryState["recovered"]> {
  return { identity: identity.keyPem + identity.chainPem, trust };
}

export function memoryStore(nodeId: string): RecoveryStore {
  let state = emptyState(nodeId);
  return {
    read: () => state,
    write: (next) => {
      state = next;
    },
  };
}
