// A key that marks one request as one, however often it is sent. `crypto.randomUUID` is missing on
// plain http beyond localhost, so the bytes are taken directly.

export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}
