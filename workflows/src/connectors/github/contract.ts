// GitHub, and GitHub Enterprise Server: its REST API, version 2022-11-28.

import { AnyText } from "@holdfast/contracts/fields";
import { z } from "zod";
import { connector } from "../connector.ts";
import { BaseUrl, HttpsUrl, Line } from "../forms.ts";

const secret = { required: true, what: "a token with access to the repository" };
const Repository = Line.max(201)
  .regex(/^[A-Za-z0-9-]{1,39}\/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, "owner/name")
  .describe("owner/name.");
const shared = {
  repo: Repository,
  baseUrl: BaseUrl.optional().describe(
    "Of GitHub Enterprise Server, with /api/v3. Default: https://api.github.com.",
  ),
};
const Issue = z.int().min(1).describe("Number of the issue or pull request.");
const Created = z.strictObject({ id: z.int(), url: z.string().describe("For people.") });

export default connector({
  name: "github",
  title: "GitHub",
  summary: "Issues, comments, workflow runs and commit statuses",
  usesNetwork: true,
  actions: {
    "issue.create": {
      summary: "Create an issue",
      effect: "at-most-once",
      secret,
      input: z.strictObject({
        ...shared,
        title: AnyText.min(1).max(256),
        body: AnyText.max(65_536).optional(),
        labels: z.array(AnyText.min(1).max(50)).max(100).optional(),
        assignees: z.array(Line.min(1).max(39)).max(10).optional(),
      }),
      output: z.strictObject({ id: z.int(), number: z.int(), url: z.string().describe("For people.") }),
    },
    "issue.comment": {
      summary: "Comment on an issue or pull request",
      effect: "at-most-once",
      secret,
      input: z.strictObject({ ...shared, issue: Issue, body: AnyText.min(1).max(65_536) }),
      output: Created,
    },
    "workflow.dispatch": {
      summary: "Start a workflow of GitHub Actions",
      effect: "at-most-once",
      secret,
      input: z.strictObject({
        ...shared,
        workflow: Line.min(1)
          .max(200)
          .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]+$/, "the id or the file name, such as deploy.yml")
          .describe("Its id, or its file name, such as deploy.yml."),
        ref: Line.min(1).max(255).describe("Branch or tag."),
        inputs: z.record(Line.min(1).max(100), AnyText.max(60_000)).optional(),
      }),
      output: z.strictObject({ dispatched: z.literal(true) }),
    },
    "status.create": {
      summary: "Set the status of a commit; the newest of each context counts",
      effect: "idempotent",
      secret,
      input: z.strictObject({
        ...shared,
        sha: Line.regex(/^[0-9a-f]{40}$/, "40 hexadecimal digits"),
        state: z.enum(["error", "failure", "pending", "success"]),
        context: Line.min(1).max(255).optional().describe("Default: holdfast."),
        description: Line.max(140).optional(),
        targetUrl: HttpsUrl.optional(),
      }),
      output: Created,
    },
  },
});
