// What the processes of an installation are asked for: the log lines that they keep, and what they run with.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, ReportedText, Text, Time } from "../fields.ts";

/** Of all lines of one process together. */
export const MOST_ANSWER_BYTES = 2 * 1024 * 1024;

export const LogRequest = z.strictObject({
  request_id: Id,
  ids: z.array(Text.min(1).max(64)).max(200).describe("Lines that name any of these."),
  since: Time.nullable(),
  until: Time.nullable(),
  limit: z.int().min(1).max(2_000),
});
export type LogRequest = z.infer<typeof LogRequest>;

export const LogAnswer = z.strictObject({
  /** False: the process keeps no lines. */
  kept: z.boolean(),
  /** JSON, one object each, oldest first. */
  lines: z.array(ReportedText.max(300_000)).max(2_000),
  truncated: z.boolean(),
  dropped: z.int().nonnegative(),
  version: Text.max(64),
  settings: z.record(AnyText.max(128), ReportedText.max(4_000).nullable()),
});
export type LogAnswer = z.infer<typeof LogAnswer>;

/** To every gateway that follows the news of this api. */
export const LogsWanted = z.strictObject({ type: z.literal("logs_wanted"), ...LogRequest.shape });

export const reportLogLines = endpoint({
  name: "reportLogLines",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/log-requests/{request_id}/lines",
  summary: "Return the log lines that a request of the api asked for",
  access: "service",
  params: z.strictObject({ request_id: Id }),
  body: z.strictObject({ instance_id: Id, answer: LogAnswer }),
  bodyLimit: 2 * MOST_ANSWER_BYTES + 256 * 1024,
});
