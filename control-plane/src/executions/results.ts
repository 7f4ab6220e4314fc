// The result of a request, as dispatchers get it.

import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import type { KnownRow } from "./queries.ts";

/** Of one that has ended; whatever is not a success is a failure with its error. */
export function resultOf({
  status,
  output,
  error,
}: Pick<KnownRow, "status" | "output" | "error">): ExecutionResult {
  return {
    status: status === "succeeded" ? "succeeded" : "failed",
    ...(output === null || output === undefined ? {} : { output }),
    ...(error === null ? {} : { error }),
  };
}
