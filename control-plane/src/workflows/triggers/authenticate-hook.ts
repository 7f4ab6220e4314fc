// Whether a request to a webhook may start a run: by its token, which is a header and never a part of the URL's path or query, or by
// its signature, which covers time, delivery and body. Pure, but for the comparison's own secrets.

import { createHmac, timingSafeEqual } from "node:crypto";
import { HOOK_TOLERANCE_SECONDS, hookHeaders } from "@holdfast/contracts/endpoints/workflow-triggers";
import { hashSecret } from "../../mechanisms/secrets.ts";

export type HookRequest = { header(name: string): string | undefined; body: Buffer; now: Date };

export type Authenticated = "yes" | "refused" | "expired";

/** Printable, without spaces. */
const deliveryForm = /^[\x21-\x7e]{1,128}$/;

/** The sender's id of the request; undefined: it has none. */
export function deliveryOf({ header }: Pick<HookRequest, "header">): string | undefined {
  const found = header(hookHeaders.delivery) ?? header("idempotency-key") ?? header("x-github-delivery");
  return found !== undefined && deliveryForm.test(found) ? found : undefined;
}

export function hasToken({ header }: HookRequest, hash: Buffer | null): Authenticated {
  const token = tokenOf(header("authorization"));
  if (token === undefined || hash === null) return "refused";
  return timingSafeEqual(hashSecret(token), hash) ? "yes" : "refused";
}

/** Of `Bearer <token>`, or of `Basic`, which clients make of a URL that contains a password. */
function tokenOf(authorization = ""): string | undefined {
  const [, scheme = "", value = ""] = /^(Bearer|Basic) (\S{1,400})$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme === "") return undefined;
  const text = Buffer.from(value, "base64").toString();
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : text.slice(colon + 1);
}

export function isSigned({ header, body, now }: HookRequest, secret: string): Authenticated {
  const [timestamp, signature] = [header(hookHeaders.timestamp), header(hookHeaders.signature)];
  // Part of what is signed, and so needed under this name.
  const delivery = header(hookHeaders.delivery);
  if (!timestamp || !signature || !delivery || !deliveryForm.test(delivery) || !/^\d{1,12}$/.test(timestamp))
    return "refused";
  const expected = Buffer.from(signatureOf(secret, { timestamp, delivery, body }));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return "refused";
  const off = Math.abs(now.getTime() / 1000 - Number(timestamp));
  return off > HOOK_TOLERANCE_SECONDS ? "expired" : "yes";
}

export function signatureOf(
  secret: string,
  { timestamp, delivery, body }: { timestamp: string; delivery: string; body: Buffer | string },
): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${delivery}.`).update(body).digest("hex")}`;
}
