// The whole story behind an id: what was refused and observed, what it was classified as, what was done, and what proved it.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { IncidentState } from "./incidents.ts";
import { LogReplica } from "./logs.ts";

export const traceKinds = [
  "refusal",
  "observation",
  "classification",
  "action",
  "result",
  "proof",
  "notification",
  "log",
] as const;
export type TraceKind = (typeof traceKinds)[number];

/** What an id can be. A `correlation` id is also that of a request, of an agent's record, or of a terminal's error. */
const tracedAs = ["incident", "task", "audit_event", "correlation", "log"] as const;

const tracedThings = ["incident", "task", "audit_event", "allocation", "terminal", "execution", "lease"] as const;

export const TraceEntry = z.strictObject({
  at: Time,
  kind: z.enum(traceKinds),
  title: z.string(),
  code: z.string().nullable().describe("Of the reason, error or failure."),
  detail: z.string().nullable(),
  by: z.string().nullable().describe("The person, process or observer."),
  node_id: Id.nullable(),
  ref: z
    .strictObject({ type: z.enum(tracedThings), id: Id })
    .nullable()
    .describe("What it is about, where that has an id of its own."),
  correlation_id: z.string().nullable(),
});
export type TraceEntry = z.infer<typeof TraceEntry>;

/** Of each source: verdicts, observations, audit events, tasks, terminals, executions, log lines and so on. */
export const MOST_TRACED = 200;

export const Trace = z.strictObject({
  id: z.string(),
  found_as: z.array(z.enum(tracedAs)),
  incidents: z
    .array(
      z.strictObject({
        ...{ id: Id, node_id: Id.nullable(), node_name: z.string().nullable(), reason: z.string() },
        ...{ title: z.string(), state: IncidentState, opened_at: Time, closed_at: Time.nullable() },
      }),
    )
    .describe("Those that the id belongs to, newest first."),
  items: z.array(TraceEntry).describe("In the order of time."),
  truncated: z
    .boolean()
    .describe(`True: there is more. Of each source the newest ${MOST_TRACED} entries are returned.`),
  withheld: z.array(z.string()).describe("Scopes that the caller lacks, and whose part of the story is left out."),
  replicas: z
    .array(LogReplica)
    .describe("The processes that were asked for log lines. Lines of an unreachable one are missing."),
});
export type Trace = z.infer<typeof Trace>;

export const getTrace = endpoint({
  name: "getTrace",
  noun: "incidents",
  method: "GET",
  path: "/v1/trace/{trace_id}",
  summary: "Read the whole story of an incident, a task, an audit event or a correlation id, with its log lines",
  access: { scope: "nodes:diagnose" },
  params: z.strictObject({ trace_id: Text.min(8).max(64) }),
  answer: Trace,
});
