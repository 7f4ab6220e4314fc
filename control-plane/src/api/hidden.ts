// The caller gets the response for an id that does not exist; the audit, which the caller cannot read, records a denied
// request.

import { ApiError } from "@holdfast/contracts/errors";

export class HiddenError extends ApiError {
  constructor() {
    super("not_found");
  }
}
