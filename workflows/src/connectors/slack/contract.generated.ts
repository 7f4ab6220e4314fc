// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared3 = check.refine((text) => !/\p{Cc}/u.test(text), "must be one line, without control characters");
const shared4 = check.optional(check.array(check.unknown(), [[50, "Too big: expected array to have <=50 items"]]));
const shared5 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared6 = check.chain(
  check.string(),
  shared2,
  shared5,
  shared1,
  check.maxLength(40000, "Too big: expected string to have <=40000 characters"),
);

export default {
  name: "slack",
  title: "Slack",
  summary: "Messages to channels",
  usesNetwork: true,
  actions: {
    "message.post": {
      summary: "Post a message (chat.postMessage)",
      effect: "at-most-once",
      secret: {required: true, what: "a bot token (xoxb-…) with the scope chat:write"},
      input: check.of(check.strictObject({
        channel: check.chain(
          check.string(),
          shared2,
          shared5,
          shared3,
          shared1,
          check.maxLength(80, "Too big: expected string to have <=80 characters"),
        ),
        text: shared6,
        blocks: shared4,
        threadTs: check.optional(check.chain(
          check.string(),
          shared2,
          shared5,
          shared3,
          check.pattern(/^\d{1,12}\.\d{1,9}$/, "a timestamp such as 1700000000.000100"),
        )),
        baseUrl: check.optional(check.chain(
          check.string(),
          shared2,
          shared5,
          shared3,
          check.maxLength(500, "Too big: expected string to have <=500 characters"),
          check.pattern(
            /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i,
            "a URL that begins with https://, without query",
          ),
        )),
      })),
      output: check.of(check.strictObject({channel: check.string(), ts: check.string()})),
    },
    "webhook.post": {
      summary: "Post a message to an incoming webhook",
      effect: "at-most-once",
      secret: {required: true, what: "the URL of the incoming webhook"},
      input: check.of(check.strictObject({text: shared6, blocks: shared4})),
      output: check.of(check.strictObject({posted: check.oneOf([true], "Invalid input: expected true")})),
    },
  },
} satisfies CheckedConnector;
