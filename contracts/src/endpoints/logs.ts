// Log lines that the processes of the installation keep, found by an id in them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";

export const logProcesses = ["api", "gateway", "worker"] as const;
export type LogProcess = (typeof logProcesses)[number];

export const LogLine = z.strictObject({
  at: Time,
  process: z.enum(logProcesses),
  replica: Id.describe("Which of several processes of this kind."),
  level: z.string(),
  message: z.string(),
  correlation_id: z.string().nullable(),
  fields: z
    .record(z.string(), z.unknown())
    .describe("Everything else on the line. Secrets are redacted before a line is kept."),
});
export type LogLine = z.infer<typeof LogLine>;

/** `unreachable`: it runs, or ran until a moment ago, and did not answer in time. `keeps_none`: it has no log store. */
const replicaStates = ["answered", "unreachable", "keeps_none"] as const;

export const LogReplica = z.strictObject({
  process: z.enum(logProcesses),
  replica: Id,
  host: z.string().nullable(),
  state: z.enum(replicaStates),
  dropped: z.int().nonnegative().describe("Lines since its start that could not be stored, as on a full disk."),
});
export type LogReplica = z.infer<typeof LogReplica>;

export const MOST_LOG_LINES = 1_000;

export const findLogs = endpoint({
  name: "findLogs",
  noun: "logs",
  method: "GET",
  path: "/v1/logs",
  summary: "Find the log lines of all processes that name an id",
  description:
    "Every process keeps its last lines. Operators of the platform get all of them, others those of their organization: " +
    "lines of a request in it, and lines that name something of it. An id that is unknown or of another organization has no lines.",
  access: { scope: "nodes:diagnose" },
  query: z.strictObject({
    id: Text.min(8).max(64).describe("A correlation id, or the id of a node, terminal, task, execution or lease."),
    since: Time.optional(),
    until: Time.optional(),
    process: z.enum(logProcesses).optional(),
    limit: z.coerce.number().int().min(1).max(MOST_LOG_LINES).default(200),
  }),
  answer: z.strictObject({
    items: z.array(LogLine).describe("Oldest first; the newest of them, if there are more."),
    truncated: z.boolean(),
    replicas: z
      .array(LogReplica)
      .describe("Every process that was asked. Lines of an unreachable one are missing."),
  }),
});
