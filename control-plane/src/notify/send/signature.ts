// The signature of a webhook: a receiver that knows the secret can tell that a message is ours, complete, and not an old one.

import { createHmac } from "node:crypto";
import { deliveryHeaders, type NotificationEvent } from "@holdfast/contracts/public/notification";

function signatureOf(secret: string, timestamp: number, body: string): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

export type SignedMessage = { id: string; event: NotificationEvent; body: string };

export function signedHeaders(
  { id, event, body }: SignedMessage,
  secret: string,
  now: number,
): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  return {
    [deliveryHeaders.id]: id,
    [deliveryHeaders.event]: event,
    [deliveryHeaders.timestamp]: String(timestamp),
    [deliveryHeaders.signature]: signatureOf(secret, timestamp, body),
  };
}
