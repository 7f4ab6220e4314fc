// Incidents of nodes: from the first cause found until none is left.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { EvidenceFile } from "../public/evidence-file.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { userStates } from "../reasons/vocabulary.ts";

export const IncidentState = z.enum(["open", "closed"]);

export const Incident = z.strictObject({
  id: Id,
  node_id: Id,
  node_name: z.string(),
  state: IncidentState,
  reason: z.string().describe("The worst cause at present, or the last one."),
  ...reasonFields,
  signal: z.string().nullable(),
  user_state: z.enum(userStates),
  began_at: Time.describe("When the first of its evidence was observed."),
  opened_at: Time.describe("When it was noticed."),
  closed_at: Time.nullable(),
  detect_within_seconds: z.int(),
  repair_within: z.string().describe("Seconds, `automatic` or `next_business_day`."),
});
export type Incident = z.infer<typeof Incident>;

export const IncidentDetail = Incident.extend({
  verdicts: z
    .array(
      z.strictObject({
        at: Time,
        causes: z.array(z.strictObject({ reason: z.string(), title: z.string(), confidence: z.string() })),
        evidence: EvidenceFile,
      }),
    )
    .describe("What was said in its course, each time that it changed, with all that was known then."),
});
export type IncidentDetail = z.infer<typeof IncidentDetail>;

export const listIncidents = endpoint({
  name: "listIncidents",
  noun: "incidents",
  method: "GET",
  path: "/v1/incidents",
  summary: "List incidents of nodes, newest first",
  access: { scope: "nodes:diagnose" },
  query: PageQuery.extend({
    node_id: Id.optional().describe("Only those of this node."),
    state: IncidentState.optional(),
  }),
  answer: pageOf(Incident),
});

export const getIncident = endpoint({
  name: "getIncident",
  noun: "incidents",
  method: "GET",
  path: "/v1/incidents/{incident_id}",
  summary: "Read an incident with its verdicts and their evidence",
  access: { scope: "nodes:diagnose" },
  params: z.strictObject({ incident_id: Id }),
  answer: IncidentDetail,
});
