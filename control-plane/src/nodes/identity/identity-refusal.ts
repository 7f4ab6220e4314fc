// Why a node's identity is not accepted, with advice that works: the server creates no token for a retired node. A
// machine that was enrolled again needs no advice, because its agent reads the new certificate by itself after a
// rejection. So whoever goes on presenting a replaced certificate has lost the identity, and must be enrolled again.

import { ApiError } from "@holdfast/contracts/errors";
import type { Standing } from "../directory/standings.ts";

/** For a revoked node or certificate. `standing` is undefined when the node does not exist. */
export function identityRefusal(standing: Pick<Standing, "status" | "revokedAt"> | undefined): ApiError {
  if (standing?.status === "retired") return new ApiError("identity_retired");
  if (standing?.revokedAt !== null) return new ApiError("identity_revoked");
  return new ApiError("certificate_replaced");
}
