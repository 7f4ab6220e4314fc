// Jira Cloud and Data Center: REST API version 2, which both have and which takes plain text.

import { AnyText } from "@holdfast/contracts/fields";
import { z } from "zod";
import { connector } from "../connector.ts";
import { BaseUrl, Line } from "../forms.ts";

const secret = {
  required: true,
  what: "an API token of Jira Cloud (with `user`), or a personal access token of Data Center",
};
const shared = {
  baseUrl: BaseUrl.describe("Such as https://example.atlassian.net."),
  user: Line.min(1)
    .max(254)
    .regex(/^[^:]*$/, "must not contain a colon")
    .optional()
    .describe("E-mail address of the account, for Jira Cloud."),
};
const IssueKey = Line.max(120).regex(/^[A-Z][A-Z0-9_]{0,99}-[1-9]\d{0,12}$/, "a key such as OPS-12");

export default connector({
  name: "jira",
  title: "Jira",
  summary: "Issues, comments and transitions",
  usesNetwork: true,
  actions: {
    "issue.create": {
      summary: "Create an issue",
      effect: "at-most-once",
      secret,
      input: z.strictObject({
        ...shared,
        project: Line.regex(/^[A-Z][A-Z0-9_]{0,99}$/, "the key of a project, such as OPS").describe("Its key."),
        type: Line.min(1).max(100).describe("Name of the issue type, such as Task."),
        summary: Line.min(1).max(255),
        description: AnyText.max(32_767).optional(),
        labels: z
          .array(Line.regex(/^\S{1,255}$/, "a label without spaces"))
          .max(50)
          .optional(),
        fields: z.record(Line.min(1).max(100), z.unknown()).optional().describe("Further fields, by their ids."),
      }),
      output: z.strictObject({ id: z.string(), key: z.string(), url: z.string().describe("Of the REST API.") }),
    },
    "issue.comment": {
      summary: "Comment on an issue",
      effect: "at-most-once",
      secret,
      input: z.strictObject({ ...shared, issue: IssueKey, body: AnyText.min(1).max(32_767) }),
      output: z.strictObject({ id: z.string(), url: z.string().describe("Of the REST API.") }),
    },
    "issue.transition": {
      summary: "Move an issue to another status",
      effect: "at-most-once",
      secret,
      input: z.strictObject({
        ...shared,
        issue: IssueKey,
        transition: Line.regex(/^\d{1,12}$/, "the id of a transition").describe("Its id."),
      }),
      output: z.strictObject({ moved: z.literal(true) }),
    },
  },
});
