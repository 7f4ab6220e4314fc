// Small forms that several contracts share.

import { z } from "zod";

export const Id = z.uuid().describe("A UUID.");
export const Time = z.iso.datetime().describe("ISO 8601, UTC.");
export const Email = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .pipe(z.email())
  .describe("An email address; capitals do not matter.");

/** Free text. PostgreSQL stores every character but NUL. */
export const Text = z
  .string()
  .trim()
  .refine((text) => !text.includes("\0"), "must not hold a NUL character");
export const PersonName = Text.min(1).max(100);
export const DisplayName = Text.min(1).max(80).describe("A name for people, up to 80 characters.");
export const Slug = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,38}[a-z0-9]$/)
  .describe("2 to 40 characters: lower-case letters, digits and hyphens, beginning with a letter.");
/** Long enough to resist guessing under the sign-in rate limit; the upper bound keeps hashing cheap. */
export const NewPassword = z.string().min(12).max(200).describe("At least 12 characters.");
