// The keys that sign tasks over HTTP.

import {
  listTaskSigningKeys,
  rotateTaskSigningKey,
  type TaskSigningKey,
} from "@holdfast/contracts/endpoints/task-signing-keys";
import type { ApiContext } from "../api/context.ts";
import { operatorRoute } from "../api/route.ts";
import { signingKey } from "../tasks/signing.ts";
import { type SigningKeyRow, selectSigningKeys } from "../tasks/signing-keys.ts";

export function keyRoutes(api: ApiContext): void {
  operatorRoute(api, listTaskSigningKeys, async ({ tx }) => {
    const rows = await selectSigningKeys(tx);
    return { items: rows.map(toKey(rows)).reverse() };
  });

  operatorRoute(api, rotateTaskSigningKey, async ({ tx, touched, afterCommit }) => {
    const { kid } = await api.nodes.keys.rotate(tx);
    const rows = await selectSigningKeys(tx);
    const keys = rows.map(toKey(rows));
    const [present, next] = [keys.find(({ state }) => state === "signing"), keys.find((key) => key.kid === kid)];
    if (!present || !next) throw new Error("a key is missing in its own transaction");
    touched({ type: "task_signing_key", id: kid }, { present: present.kid, signs_from: next.signs_from });
    afterCommit(() => void api.nodes.keys.refresh());
    return { present, next };
  });
}

function toKey(all: readonly SigningKeyRow[]): (row: SigningKeyRow) => TaskSigningKey {
  const now = Date.now();
  const signing = signingKey(all, now);
  return (row) => ({
    kid: row.kid,
    state: row === signing ? "signing" : row.sign_from.getTime() > now ? "next" : "verifying",
    created_at: row.created_at.toISOString(),
    signs_from: row.sign_from.toISOString(),
    verifies_until: row.verify_until?.toISOString() ?? null,
  });
}
