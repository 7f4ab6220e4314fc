// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(32767, "Too big: expected string to have <=32767 characters");
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
  shared1,
  check.maxLength(100, "Too big: expected string to have <=100 characters"),
);
const shared7 = check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  check.maxLength(120, "Too big: expected string to have <=120 characters"),
  check.pattern(/^[A-Z][A-Z0-9_]{0,99}-[1-9]\d{0,12}$/, "a key such as OPS-12"),
);
const shared8 = check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  check.maxLength(500, "Too big: expected string to have <=500 characters"),
  check.pattern(
    /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i,
    "a URL that begins with https://, without query",
  ),
);
const shared9 = check.optional(check.chain(
  check.string(),
  shared3,
  shared5,
  shared4,
  shared1,
  check.maxLength(254, "Too big: expected string to have <=254 characters"),
  check.pattern(/^[^:]*$/, "must not contain a colon"),
));

export default {
  name: "jira",
  title: "Jira",
  summary: "Issues, comments and transitions",
  usesNetwork: true,
  actions: {
    "issue.create": {
      summary: "Create an issue",
      effect: "at-most-once",
      secret: {
        required: true,
        what: "an API token of Jira Cloud (with `user`), or a personal access token of Data Center",
      },
      input: check.of(check.strictObject({
        baseUrl: shared8,
        user: shared9,
        project: check.chain(
          check.string(),
          shared3,
          shared5,
          shared4,
          check.pattern(/^[A-Z][A-Z0-9_]{0,99}$/, "the key of a project, such as OPS"),
        ),
        type: shared6,
        summary: check.chain(
          check.string(),
          shared3,
          shared5,
          shared4,
          shared1,
          check.maxLength(255, "Too big: expected string to have <=255 characters"),
        ),
        description: check.optional(check.chain(check.string(), shared3, shared5, shared2)),
        labels: check.optional(check.array(
          check.chain(
            check.string(),
            shared3,
            shared5,
            shared4,
            check.pattern(/^\S{1,255}$/, "a label without spaces"),
          ),
          [[50, "Too big: expected array to have <=50 items"]],
        )),
        fields: check.optional(check.record(shared6, check.unknown(), "Invalid key in record")),
      })),
      output: check.of(check.strictObject({id: check.string(), key: check.string(), url: check.string()})),
    },
    "issue.comment": {
      summary: "Comment on an issue",
      effect: "at-most-once",
      secret: {
        required: true,
        what: "an API token of Jira Cloud (with `user`), or a personal access token of Data Center",
      },
      input: check.of(check.strictObject({
        baseUrl: shared8,
        user: shared9,
        issue: shared7,
        body: check.chain(check.string(), shared3, shared5, shared1, shared2),
      })),
      output: check.of(check.strictObject({id: check.string(), url: check.string()})),
    },
    "issue.transition": {
      summary: "Move an issue to another status",
      effect: "at-most-once",
      secret: {
        required: true,
        what: "an API token of Jira Cloud (with `user`), or a personal access token of Data Center",
      },
      input: check.of(check.strictObject({
        baseUrl: shared8,
        user: shared9,
        issue: shared7,
        transition: check.chain(
          check.string(),
          shared3,
          shared5,
          shared4,
          check.pattern(/^\d{1,12}$/, "the id of a transition"),
        ),
      })),
      output: check.of(check.strictObject({moved: check.oneOf([true], "Invalid input: expected true")})),
    },
  },
} satisfies CheckedConnector;
