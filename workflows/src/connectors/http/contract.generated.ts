// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(256, "Too big: expected string to have <=256 characters");
const shared3 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared4 = check.refine((text) => !/\p{Cc}/u.test(text), "must be one line, without control characters");
const shared5 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared6 = check.of(check.strictObject({
  status: check.chain(check.number(), check.integer()),
  headers: check.record(check.string(), check.string(), "Invalid key in record"),
  body: check.unknown(),
}));
const shared7 = check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  check.minLength(8, "Too small: expected string to have >=8 characters"),
  check.maxLength(2000, "Too big: expected string to have <=2000 characters"),
  check.pattern(/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/i, "a URL that begins with https://"),
);
const shared8 = check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  shared1,
  shared2,
  check.pattern(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "the name of a header"),
  check.refine(
    (name) =>
    !/^(authorization|proxy-authorization|host|connection|content-length|transfer-encoding|upgrade|te|trailer|idempotency-key)$/i.test(
      name,
    ),
    "is set by the connector",
  ),
);
const shared9 = check.optional(check.chain(
  check.record(
    shared8,
    check.chain(
      check.string(),
      shared3,
      shared5,
      shared4,
      check.maxLength(8192, "Too big: expected string to have <=8192 characters"),
    ),
    "Invalid key in record",
  ),
  check.refine((all) => Object.keys(all).length <= 50, "at most 50 headers"),
));
const shared10 = check.optional(check.variants(
  "scheme",
  [
    [
      ["bearer"],
      check.strictObject({scheme: check.oneOf(["bearer"], "Invalid input: expected \"bearer\"")}),
    ],
    [
      ["basic"],
      check.strictObject({
        scheme: check.oneOf(["basic"], "Invalid input: expected \"basic\""),
        user: check.chain(
          check.string(),
          shared3,
          shared5,
          shared4,
          shared1,
          shared2,
          check.pattern(/^[^:]*$/, "must not contain a colon"),
        ),
      }),
    ],
    [
      ["header"],
      check.strictObject({scheme: check.oneOf(["header"], "Invalid input: expected \"header\""), header: shared8}),
    ],
  ],
  "Invalid discriminator value. Expected 'bearer' | 'basic' | 'header'",
));

export default {
  name: "http",
  title: "HTTP",
  summary: "Requests to any HTTP server",
  usesNetwork: true,
  actions: {
    get: {
      summary: "Read a URL",
      effect: "idempotent",
      secret: {required: false, what: "a token or password, sent as `auth` says"},
      input: check.of(check.strictObject({url: shared7, headers: shared9, auth: shared10, anyStatus: check.optional(check.boolean())})),
      output: shared6,
    },
    request: {
      summary: "Send a request, with an Idempotency-Key",
      effect: "at-most-once",
      secret: {required: false, what: "a token or password, sent as `auth` says"},
      input: check.of(check.chain(
        check.strictObject({
          method: check.oneOf(
            ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
            "Invalid option: expected one of \"GET\"|\"HEAD\"|\"POST\"|\"PUT\"|\"PATCH\"|\"DELETE\"|\"OPTIONS\"",
          ),
          url: shared7,
          headers: shared9,
          auth: shared10,
          anyStatus: check.optional(check.boolean()),
          text: check.optional(check.chain(
            check.string(),
            shared3,
            shared5,
            check.maxLength(400000, "Too big: expected string to have <=400000 characters"),
          )),
          json: check.optional(check.unknown()),
        }),
        check.refine(
          (input) => input.text === undefined || input.json === undefined,
          "use only one of text and json",
        ),
      )),
      output: shared6,
    },
  },
} satisfies CheckedConnector;
