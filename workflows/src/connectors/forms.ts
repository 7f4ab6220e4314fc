// Forms that several connectors share.

import { AnyText } from "@holdfast/contracts/fields";

/** One line: what becomes a header must not begin another one. */
export const Line = AnyText.refine(
  (text) => !/\p{Cc}/u.test(text),
  "must be one line, without control characters",
);

export const HttpsUrl = Line.min(8)
  .max(2_000)
  .regex(/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/i, "a URL that begins with https://");

export const BaseUrl = Line.max(500)
  .regex(/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i, "a URL that begins with https://, without query")
  .describe("URL of the server.");
