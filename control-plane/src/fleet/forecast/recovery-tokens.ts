// Until when nodes could recover by themselves.

import type { Tx } from "../../database/connect.ts";

/** A part of a statement: the nodes with a recovery token that they have shown, as `node_id` and `expires_at`. */
export function currentTokens(tx: Tx) {
  return tx`
    SELECT DISTINCT ON (node_id) node_id, expires_at FROM recovery_tokens
    WHERE held_at IS NOT NULL AND revoked_at IS NULL AND expires_at > now() ORDER BY node_id, seq DESC`;
}
