// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(254, "Too big: expected string to have <=254 characters");
const shared3 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared4 = check.refine((text) => !/\p{Cc}/u.test(text), "must be one line, without control characters");
const shared5 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared6 = check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  shared2,
  check.pattern(/^[^\s<>()[\],;:"@]+@[^\s<>()[\],;:"@]+$/, "an email address"),
);
const shared7 = check.array(shared6, [[50, "Too big: expected array to have <=50 items"]]);

export default {
  name: "email",
  title: "Email",
  summary: "Mail by SMTP",
  usesNetwork: true,
  actions: {
    send: {
      summary: "Send a mail; its Message-ID is the same for every attempt",
      effect: "at-most-once",
      secret: {required: false, what: "the password of `server.user`"},
      input: check.of(check.strictObject({
        server: check.strictObject({
          host: check.chain(
            check.string(),
            shared3,
            shared5,
            shared4,
            shared1,
            check.maxLength(253, "Too big: expected string to have <=253 characters"),
            check.pattern(/^[A-Za-z0-9._:-]+$/, "a host name"),
          ),
          port: check.optional(check.chain(
            check.number(),
            check.integer(),
            check.min(1, "Too small: expected number to be >=1"),
            check.max(65535, "Too big: expected number to be <=65535"),
          )),
          tls: check.optional(check.oneOf(
            ["tls", "starttls", "none"],
            "Invalid option: expected one of \"tls\"|\"starttls\"|\"none\"",
          )),
          user: check.optional(check.chain(check.string(), shared3, shared5, shared4, shared1, shared2)),
        }),
        from: shared6,
        to: check.chain(shared7, check.minLength(1, "Too small: expected array to have >=1 items")),
        cc: check.optional(shared7),
        subject: check.chain(
          check.string(),
          shared3,
          shared5,
          shared4,
          shared1,
          check.maxLength(500, "Too big: expected string to have <=500 characters"),
        ),
        text: check.chain(
          check.string(),
          shared3,
          shared5,
          shared1,
          check.maxLength(200000, "Too big: expected string to have <=200000 characters"),
        ),
      })),
      output: check.of(check.strictObject({
        messageId: check.string(),
        accepted: check.array(check.string()),
        rejected: check.array(check.string()),
      })),
    },
  },
} satisfies CheckedConnector;
