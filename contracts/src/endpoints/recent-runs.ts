// The newest runs of several workflows at once, for lists of workflows.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Time } from "../fields.ts";
import { RunState } from "./runs.ts";

/** Of one request. */
export const MOST_WORKFLOWS_AT_ONCE = 100;

const id = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const idList = new RegExp(`^${id}(,${id}){0,${MOST_WORKFLOWS_AT_ONCE - 1}}$`);

export const RecentRun = z.strictObject({
  id: Id,
  status: RunState,
  created_at: Time,
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
});
export type RecentRun = z.infer<typeof RecentRun>;

export const listRecentRuns = endpoint({
  name: "listRecentRuns",
  noun: "runs",
  method: "GET",
  path: "/v1/recent-runs",
  summary: "The newest runs of each of several workflows",
  access: { scope: "workflows:read" },
  query: z.strictObject({
    workflow_ids: AnyText.regex(idList, `1 to ${MOST_WORKFLOWS_AT_ONCE} ids, separated by commas`).describe(
      "Ids, separated by commas.",
    ),
    each: z.coerce.number().int().min(1).max(50).default(20).describe("How many runs of each workflow."),
  }),
  answer: z.strictObject({
    items: z
      .array(z.strictObject({ workflow_id: Id, runs: z.array(RecentRun).describe("Newest first.") }))
      .describe("Workflows that have runs."),
  }),
});
