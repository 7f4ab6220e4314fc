// The state of an API token at a given time.

import type { ApiToken } from "@holdfast/contracts/endpoints/tokens";
import type { State } from "../../design/values/StatusMark.tsx";

export type TokenState = { state: State; word: string; usable: boolean };

export function tokenState(token: Pick<ApiToken, "revoked_at" | "expires_at">, now: number): TokenState {
  if (token.revoked_at) return { state: "ended", word: "Revoked", usable: false };
  if (token.expires_at && Date.parse(token.expires_at) <= now)
    return { state: "ended", word: "Expired", usable: false };
  return { state: "ok", word: "Active", usable: true };
}
