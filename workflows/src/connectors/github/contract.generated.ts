// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedConnector } from "../checked-connector.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(65536, "Too big: expected string to have <=65536 characters");
const shared3 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared4 = check.refine((text) => !/\p{Cc}/u.test(text), "must be one line, without control characters");
const shared5 = check.of(check.strictObject({id: check.chain(check.number(), check.integer()), url: check.string()}));
const shared6 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared7 = check.chain(
  check.string(),
  shared3,
  shared6,
  shared4,
  shared1,
  check.maxLength(255, "Too big: expected string to have <=255 characters"),
);
const shared8 = check.chain(
  check.string(),
  shared3,
  shared6,
  shared4,
  check.maxLength(201, "Too big: expected string to have <=201 characters"),
  check.pattern(/^[A-Za-z0-9-]{1,39}\/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, "owner/name"),
);
const shared9 = check.optional(check.chain(
  check.string(),
  shared3,
  shared6,
  shared4,
  check.maxLength(500, "Too big: expected string to have <=500 characters"),
  check.pattern(
    /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i,
    "a URL that begins with https://, without query",
  ),
));

export default {
  name: "github",
  title: "GitHub",
  summary: "Issues, comments, workflow runs and commit statuses",
  usesNetwork: true,
  actions: {
    "issue.create": {
      summary: "Create an issue",
      effect: "at-most-once",
      secret: {required: true, what: "a token with access to the repository"},
      input: check.of(check.strictObject({
        repo: shared8,
        baseUrl: shared9,
        title: check.chain(
          check.string(),
          shared3,
          shared6,
          shared1,
          check.maxLength(256, "Too big: expected string to have <=256 characters"),
        ),
        body: check.optional(check.chain(check.string(), shared3, shared6, shared2)),
        labels: check.optional(check.array(
          check.chain(
            check.string(),
            shared3,
            shared6,
            shared1,
            check.maxLength(50, "Too big: expected string to have <=50 characters"),
          ),
          [[100, "Too big: expected array to have <=100 items"]],
        )),
        assignees: check.optional(check.array(
          check.chain(
            check.string(),
            shared3,
            shared6,
            shared4,
            shared1,
            check.maxLength(39, "Too big: expected string to have <=39 characters"),
          ),
          [[10, "Too big: expected array to have <=10 items"]],
        )),
      })),
      output: check.of(check.strictObject({
        id: check.chain(check.number(), check.integer()),
        number: check.chain(check.number(), check.integer()),
        url: check.string(),
      })),
    },
    "issue.comment": {
      summary: "Comment on an issue or pull request",
      effect: "at-most-once",
      secret: {required: true, what: "a token with access to the repository"},
      input: check.of(check.strictObject({
        repo: shared8,
        baseUrl: shared9,
        issue: check.chain(
          check.number(),
          check.integer(),
          check.min(1, "Too small: expected number to be >=1"),
        ),
        body: check.chain(check.string(), shared3, shared6, shared1, shared2),
      })),
      output: shared5,
    },
    "workflow.dispatch": {
      summary: "Start a workflow of GitHub Actions",
      effect: "at-most-once",
      secret: {required: true, what: "a token with access to the repository"},
      input: check.of(check.strictObject({
        repo: shared8,
        baseUrl: shared9,
        workflow: check.chain(
          check.string(),
          shared3,
          shared6,
          shared4,
          shared1,
          check.maxLength(200, "Too big: expected string to have <=200 characters"),
          check.pattern(
            /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/,
            "the id or the file name, such as deploy.yml",
          ),
        ),
        ref: shared7,
        inputs: check.optional(check.record(
          check.chain(
            check.string(),
            shared3,
            shared6,
            shared4,
            shared1,
            check.maxLength(100, "Too big: expected string to have <=100 characters"),
          ),
          check.chain(
            check.string(),
            shared3,
            shared6,
            check.maxLength(60000, "Too big: expected string to have <=60000 characters"),
          ),
          "Invalid key in record",
        )),
      })),
      output: check.of(check.strictObject({dispatched: check.oneOf([true], "Invalid input: expected true")})),
    },
    "status.create": {
      summary: "Set the status of a commit; the newest of each context counts",
      effect: "idempotent",
      secret: {required: true, what: "a token with access to the repository"},
      input: check.of(check.strictObject({
        repo: shared8,
        baseUrl: shared9,
        sha: check.chain(
          check.string(),
          shared3,
          shared6,
          shared4,
          check.pattern(/^[0-9a-f]{40}$/, "40 hexadecimal digits"),
        ),
        state: check.oneOf(
          ["error", "failure", "pending", "success"],
          "Invalid option: expected one of \"error\"|\"failure\"|\"pending\"|\"success\"",
        ),
        context: check.optional(shared7),
        description: check.optional(check.chain(
          check.string(),
          shared3,
          shared6,
          shared4,
          check.maxLength(140, "Too big: expected string to have <=140 characters"),
        )),
        targetUrl: check.optional(check.chain(
          check.string(),
          shared3,
          shared6,
          shared4,
          check.minLength(8, "Too small: expected string to have >=8 characters"),
          check.maxLength(2000, "Too big: expected string to have <=2000 characters"),
          check.pattern(/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/i, "a URL that begins with https://"),
        )),
      })),
      output: shared5,
    },
  },
} satisfies CheckedConnector;
