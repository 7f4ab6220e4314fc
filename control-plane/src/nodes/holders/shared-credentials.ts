// Everything that two machines with one identity have in common, and that proves to this server who they are.

import { ApiError } from "@holdfast/contracts/errors";
import type { Tx } from "../../database/connect.ts";
import { revokeTokensFor } from "../directory/queries.ts";
import { type Moved, moveNode } from "../directory/state.ts";

const REASON =
  "Two machines had this node's identity. The one that is kept enrolls again; the other one must be reimaged.";

/** Certificates and enrollment tokens. Whatever else a node can identify itself with is revoked here, too. */
export async function revokeSharedCredentials(tx: Tx, nodeId: string): Promise<Moved> {
  const moved = await moveNode(tx, nodeId, "revoke", { reason: REASON });
  if (!moved) throw new ApiError("not_found");
  if ("refused" in moved) {
    throw new ApiError("node_change_refused", { message: moved.refused, details: { status: moved.row.status } });
  }
  await revokeTokensFor(tx, nodeId);
  return moved;
}
