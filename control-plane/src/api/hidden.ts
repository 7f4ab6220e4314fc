// To the caller like an id that does not exist; to the audit, which the caller cannot read, a denied request.

import { ApiError } from "@holdfast/contracts/errors";

export class HiddenError extends ApiError {
  constructor() {
    super("not_found");
  }
}
