// Error codes in capitals, as callers and agents of other systems expect them.

import { ApiError, type ErrorCode, type ErrorEnvelope } from "@holdfast/contracts/errors";

class InCapitals extends ApiError {
  override envelope(correlationId: string): ErrorEnvelope {
    const envelope = super.envelope(correlationId);
    return { ...envelope, code: envelope.code.toUpperCase() as ErrorCode };
  }
}

export function inCapitals(error: ApiError): ApiError {
  const { code, message, nextStep, details, headers } = error;
  return new InCapitals(code, { message, nextStep, details, headers });
}
