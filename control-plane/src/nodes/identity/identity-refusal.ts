// Why a node's identity is not accepted, with advice that works: the server creates no token for a retired node, and a
// replaced certificate needs none.

import { ApiError } from "@holdfast/contracts/errors";
import type { Standing } from "../directory/standings.ts";

/** For a revoked node or certificate. `standing` is undefined when the node does not exist. */
export function identityRefusal(standing: Pick<Standing, "status" | "revokedAt"> | undefined): ApiError {
  if (standing?.status === "retired") return new ApiError("identity_retired");
  if (standing?.revokedAt !== null) return new ApiError("identity_revoked");
  return new ApiError("identity_revoked", {
    message: "This certificate was replaced when the node was enrolled again.",
    nextStep: "Restart the agent, so that it uses its new certificate.",
  });
}
