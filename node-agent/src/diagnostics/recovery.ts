// What `holdfast agent diagnose` reports about the recovery of this node: the token that it has, never the token itself,
// and what the recovery is doing.

import type { AgentFile } from "../identity/agent-file.ts";
import type { Identity } from "../identity/identity-file.ts";
import { isReplaced } from "../identity/recovered.ts";
import type { StateFiles } from "../identity/state-directory.ts";
import { suppressedFor } from "../recovery/decide.ts";
import { recoveredIn } from "../recovery/state.ts";
import { readRecoveryFile } from "../recovery/state-file.ts";
import { span } from "./self-checks.ts";

export type RecoveryPicture = {
  /** `current`: not too old by this host's clock, and for the profile in force. */
  token: { seq: number; profile: string; expires_at: string; current: boolean } | null;
  /** Pinned when the node joined. */
  url: string | null;
  /** A new identity was requested, and its response is not known. */
  requested: boolean;
  /** Recovered, and not in the ordinary files yet because they could not be written. */
  unsaved: boolean;
  /** Because the last recovered certificate was rejected; null: not suppressed. */
  suppressed_until: string | null;
  /** Why none of this can be read. */
  problem: string | null;
};

export function lookAtRecovery(
  files: StateFiles,
  agent: AgentFile,
  now: number,
): { picture: RecoveryPicture; unsaved: Identity | undefined } {
  const url = agent.recovery_api_url ?? null;
  const none = { token: null, url, requested: false, unsaved: false, suppressed_until: null };
  try {
    const state = readRecoveryFile(files, agent.node_id);
    const { token, sent, rejected } = state;
    const recovered = recoveredIn(state);
    const unsaved = recovered && !isReplaced(files, recovered) ? recovered.identity : undefined;
    const suppressedMs = suppressedFor(rejected, now);
    return {
      unsaved,
      picture: {
        token: token && {
          ...{ seq: token.seq, profile: token.profile, expires_at: token.expires_at },
          current: Date.parse(token.expires_at) > now && token.profile === agent.profile.name,
        },
        ...{ url, requested: sent !== null, unsaved: unsaved !== undefined, problem: null },
        suppressed_until: suppressedMs > 0 ? new Date(now + suppressedMs).toISOString() : null,
      },
    };
  } catch (error) {
    return { unsaved: undefined, picture: { ...none, problem: (error as Error).message } };
  }
}

export function recoveryText(picture: RecoveryPicture, now: number): string {
  const { token, problem, suppressed_until } = picture;
  if (problem !== null) return `cannot be read: ${problem}`;
  return [
    token === null ? "no recovery token yet" : tokenText(token, now),
    ...(picture.unsaved ? ["a recovered identity is in use and waits for disk space"] : []),
    ...(picture.requested ? ["a new identity was requested, without a response so far"] : []),
    ...(suppressed_until === null
      ? []
      : [`the last recovered certificate was rejected, no other one is requested before ${suppressed_until}`]),
  ].join("; ");
}

function tokenText(
  { seq, profile, expires_at, current }: NonNullable<RecoveryPicture["token"]>,
  now: number,
): string {
  const left = Date.parse(expires_at) - now;
  if (left <= 0) return `token ${seq} expired at ${expires_at}, ${span(left)} ago`;
  return current
    ? `token ${seq} valid until ${expires_at}, ${span(left)} from now`
    : `token ${seq} is for another environment, ${profile}`;
}
