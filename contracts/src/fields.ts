// Small forms that several contracts share.

import { z } from "zod";
import { reasonForm } from "./reasons/vocabulary.ts";

export const Id = z
  .string()
  .toLowerCase()
  .pipe(z.uuid("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"))
  .describe("A UUID.");
/** The database knows no year 0. */
export const Time = z.iso
  .datetime()
  .refine((text) => !text.startsWith("0000"), "there is no year 0")
  .describe("ISO 8601, UTC.");
export const Email = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .pipe(z.email())
  .describe("An email address; capitals do not matter.");

const WithoutNul = z.string().refine((text) => !text.includes("\0"), "must not contain a NUL character");
/**
 * The base of every text in a request. PostgreSQL stores every character but NUL, and no half of one; `fields.test.ts`
 * finds a text in any contract that would let them through.
 */
export const AnyText = WithoutNul.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
/** Free text. Half of a surrogate pair becomes U+FFFD. */
export const Text = WithoutNul.trim().overwrite((text) => text.toWellFormed());
/** What a program reports. Cleaned instead of refused: a result must not be lost because of one character. */
export const ReportedText = z.string().overwrite((text) => text.replaceAll("\0", "").toWellFormed());
/** What stands beside others in a list: something to see, and nothing that turns the text around. */
const Name = Text.min(1)
  .refine((text) => /[\p{L}\p{N}\p{P}\p{S}]/u.test(text), "must hold something visible")
  .refine((text) => !/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text), "must not hold control characters");
export const PersonName = Name.max(100);
export const DisplayName = Name.max(80).describe("A name for people, up to 80 characters.");
export const Slug = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,38}[a-z0-9]$/,
    "2 to 40 lower-case letters, digits and hyphens, starting with a letter",
  )
  .describe("2 to 40 characters: lower-case letters, digits and hyphens, starting with a letter.");
/** Of a reason, which need not be in this version's catalogue. */
export const ReasonText = z.string().regex(reasonForm, "a code: lower-case letters, digits and underscores");
/** Long enough to resist guessing under the sign-in rate limit; the upper bound keeps hashing cheap. */
export const NewPassword = AnyText.min(12).max(200).describe("At least 12 characters.");
