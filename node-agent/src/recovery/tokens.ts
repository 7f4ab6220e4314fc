// The tokens of this node and the key that one of them was sent with, in memory and in the store. What cannot be stored is
// kept in memory and stored later; a key is never used before it is stored.

import type { HeldRecoveryToken, RecoveryToken } from "@holdfast/contracts/node/recovery";
import { newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { judgeToken, type TokenVerdict } from "./decide.ts";
import { newestToken, type RecoveryState, type RecoveryStore } from "./state.ts";

export type Tokens = {
  /** Newer than what is stored while that cannot be written. */
  state(): RecoveryState;
  /** The newest token that is stored. */
  held(): HeldRecoveryToken | null;
  /** Retried by `saveAgain`. */
  keep(changes: Partial<RecoveryState>): void;
  saveAgain(): void;
  learn(offered: RecoveryToken | undefined): void;
  /** The one to send next, and whether it may be. */
  choose(): { token: RecoveryToken | undefined; verdict: TokenVerdict };
  /** The same for every request with this token. Throws a HostProblem when it cannot be stored. */
  keyFor(token: RecoveryToken): string;
  /** Too old by the server's signed time. */
  markExpired(token: RecoveryToken): void;
  /** The server does not accept it, whatever it is used for. */
  markRefused(token: RecoveryToken): void;
};

/** Of a token that an operator provided: the server decides about its age. */
const NO_EXPIRY = "9999-12-31T23:59:59Z";

export function createTokens(options: {
  store: RecoveryStore;
  /** The name of the profile in force. */
  profile: () => string;
  given: string | undefined;
  /** This host's clock. */
  clock: () => number;
}): Tokens {
  const { store, profile, given } = options;
  let stored = store.read();
  let state = stored;
  const expired = new Set<string>();
  const refused = new Set<string>();

  const save = (next: RecoveryState) => {
    state = next;
    store.write(next);
    stored = next;
  };
  const keep = (changes: Partial<RecoveryState>) => {
    try {
      save({ ...state, ...changes });
    } catch {
      // The host's self-checks report a disk that cannot be written.
    }
  };
  const judge = (token: RecoveryToken | undefined) =>
    judgeToken(token, { profile: profile(), isExpired: expired.has(token?.token ?? "") });

  return {
    state: () => state,
    held: () => (stored.token ? { seq: stored.token.seq, expires_at: stored.token.expires_at } : null),
    keep,
    saveAgain() {
      if (state !== stored) keep({});
    },
    learn(offered) {
      const token = newestToken(state.token, offered);
      if (!token) return;
      const isOver = state.sent !== null && Date.parse(state.sent.token.expires_at) <= options.clock();
      keep({ token, ...(isOver ? { sent: null } : {}) });
    },
    choose() {
      const newest = state.token ?? ofOperator(given, profile());
      // One that was sent goes first, because its response may have been lost; one that was refused goes last.
      const usable = [state.sent?.token, newest].flatMap((one) => (one && judge(one) === "usable" ? [one] : []));
      const token = usable.find((one) => !refused.has(one.token)) ?? usable.at(-1) ?? newest;
      return { token, verdict: judge(token) };
    },
    keyFor(token) {
      const key = state.sent?.token.token === token.token ? state.sent.key : privateKeyPem(newPrivateKey());
      if (stored.sent?.key !== key) save({ ...state, sent: { token, key } });
      return key;
    },
    markExpired: ({ token }) => void expired.add(token),
    markRefused: ({ token }) => void refused.add(token),
  };
}

function ofOperator(token: string | undefined, profile: string): RecoveryToken | undefined {
  if (token === undefined) return undefined;
  return { token, seq: 0, profile, issued_at: new Date(0).toISOString(), expires_at: NO_EXPIRY };
}
