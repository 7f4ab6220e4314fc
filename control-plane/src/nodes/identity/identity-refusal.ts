// Why a node's identity is not accepted, with advice that the server itself would follow: it makes no token for a
// retired node, and a replaced certificate needs none.

import { ApiError } from "@holdfast/contracts/errors";
import type { Standing } from "../directory/standings.ts";

/** Of a node or certificate that is revoked. Undefined: there is no such node. */
export function identityRefusal(standing: Pick<Standing, "status" | "revokedAt"> | undefined): ApiError {
  if (standing?.status === "retired") return new ApiError("identity_retired");
  if (standing?.revokedAt !== null) return new ApiError("identity_revoked");
  return new ApiError("identity_revoked", {
    message: "This certificate was replaced when the node was enrolled again.",
    nextStep: "Restart the agent, so that it uses its new certificate.",
  });
}
