// Limits how often a password may be tried. Attempts from a device or a network where the person has signed in before are
// counted apart from those of strangers: whoever fills the strangers' count cannot lock the person out (ADR 18).

import { hash as digest } from "node:crypto";
import type { Queryable, Sql } from "../database/connect.ts";
import { forgetAttempts, type Limit, limits, networkOf, takeAttempt } from "../mechanisms/rate-limit.ts";
import { hashSecret, isSecretOf, makeSecret } from "../mechanisms/secrets.ts";

/** Where an attempt comes from. `device` is the secret of the device cookie. */
export type Place = { address: string; device: string | undefined };

/** Days; also how long a browser keeps its device cookie. */
export const KNOWN_DAYS = 180;
/** Maximum of each kind per person: a new one replaces the oldest. */
const KNOWN_AT_MOST = 20;

type Count = { limit: Limit; subject: string[] };

/** Counts one attempt, or refuses it with the time to wait. An account that does not exist is counted the same way. */
export async function takePasswordAttempt(system: Sql, email: string, place: Place): Promise<void> {
  for (const { limit, subject } of countsOf(email, place, await recognise(system, email, place))) {
    await takeAttempt(system, limit, ...subject);
  }
}

/** After the right password, the counts of this device and network are reset; those of strangers are not. */
export async function forgetPasswordAttempts(system: Sql, email: string, place: Place): Promise<void> {
  await forgetAttempts(system, ...fromNetwork(email, place));
  if (place.device) await forgetAttempts(system, ...fromDevice(email, place.device));
}

/** The narrow counts first: what they refuse must not count against the account everywhere. */
function countsOf(email: string, place: Place, known: Known | undefined): Count[] {
  if (known === "device") return [{ limit: limits.device, subject: fromDevice(email, place.device ?? "") }];
  return [
    { limit: limits.address, subject: ["sign-in", networkOf(place.address)] },
    { limit: limits.accountFromAddress, subject: fromNetwork(email, place) },
    ...(known === "network" ? [] : [{ limit: limits.strangers, subject: ["sign-in", email] }]),
  ];
}

const fromNetwork = (email: string, { address }: Place) => ["sign-in", email, networkOf(address)];
const fromDevice = (email: string, device: string) => ["sign-in", email, "device", device];

type Known = "device" | "network";

async function recognise(system: Sql, email: string, place: Place): Promise<Known | undefined> {
  const [row] = await system<{ kind: Known }[]>`
    SELECT k.kind FROM known_sign_ins k JOIN users u ON u.id = k.user_id
    WHERE u.email = ${email} AND k.last_used_at > now() - ${KNOWN_DAYS} * interval '1 day'
      AND ((k.kind = 'device' AND k.hash = ${hashSecret(place.device ?? "")})
        OR (k.kind = 'network' AND k.hash = ${networkHash(place)}))
    ORDER BY k.kind = 'device' DESC LIMIT 1`;
  return row?.kind;
}

/** After the right password. Returns the secret for the device cookie, the one it had or a new one. */
export async function rememberPlace(db: Queryable, userId: string, place: Place): Promise<string> {
  const device = place.device && isSecretOf("device", place.device) ? place.device : makeSecret("device").secret;
  for (const [kind, hash] of [
    ["device", hashSecret(device)],
    ["network", networkHash(place)],
  ] as const) {
    await db`
      INSERT INTO known_sign_ins (user_id, kind, hash) VALUES (${userId}, ${kind}, ${hash})
      ON CONFLICT (user_id, kind, hash) DO UPDATE SET last_used_at = now()`;
    await db`
      DELETE FROM known_sign_ins WHERE user_id = ${userId} AND kind = ${kind} AND hash IN (
        SELECT hash FROM known_sign_ins WHERE user_id = ${userId} AND kind = ${kind}
        ORDER BY last_used_at DESC OFFSET ${KNOWN_AT_MOST})`;
  }
  return device;
}

/** After a new password: somebody with the old one may have signed in and become known. */
export async function forgetPlaces(db: Queryable, userId: string): Promise<void> {
  await db`DELETE FROM known_sign_ins WHERE user_id = ${userId}`;
}

function networkHash({ address }: Place): Buffer {
  return digest("sha256", networkOf(address), "buffer");
}
