// Which ids belong to an organization. Runs confined to it, so that an id of another one is as unknown as any other.

import { uuidForm } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";
import { belongsTo, type KeptLine, ownedIdsOf } from "./lines.ts";

export async function linesOf(tx: Tx, orgId: string, lines: readonly KeptLine[]): Promise<KeptLine[]> {
  const owned = await selectOwned(tx, [...new Set(lines.flatMap(ownedIdsOf))]);
  return lines.filter((line) => belongsTo(line, orgId, owned));
}

async function selectOwned(tx: Tx, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const uuids = ids.filter((id) => uuidForm.test(id));
  const rows = await tx<{ id: string }[]>`
    SELECT id::text FROM nodes WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM allocations WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM terminal_sessions WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM tasks WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM incidents WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM vm_leases WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT vm_id::text FROM vm_leases WHERE vm_id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM execution_agents WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT id::text FROM executions WHERE id = ANY(${uuids}::uuid[])
    UNION SELECT request_id FROM executions WHERE request_id = ANY(${ids as string[]}::text[])`;
  return new Set(rows.map(({ id }) => id));
}
