// Incidents of nodes: from the first cause found until none is left; and those that several of them are part of.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { EvidenceFile } from "../public/evidence-file.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { userStates } from "../reasons/vocabulary.ts";

export const IncidentState = z.enum(["open", "closed"]);

/** What distinguishes nodes. Of those that are shared by as many nodes, an earlier one is named. */
export const nodeAttributes = [
  "ingress",
  "profile",
  "ca",
  "agent_version",
  "subnet",
  "provider",
  "network_side",
] as const;
export type NodeAttribute = (typeof nodeAttributes)[number];

/**
 * What the nodes of a common cause share. `fleet`: at least half of all nodes are affected, and nothing tells them from the others.
 * `control_plane`: it is suspected, because nodes do not go offline together by themselves.
 */
export const sharedAttributes = [...nodeAttributes, "fleet", "control_plane"] as const;
export type SharedAttribute = (typeof sharedAttributes)[number];

export const Shared = z.strictObject({
  attribute: z.enum(sharedAttributes),
  value: z.string().nullable(),
  suspected: z.boolean().describe("True: the cause is likely, but no observation proves it."),
  sentence: z.string().describe("What your nodes have in common, in words."),
});
export type Shared = z.infer<typeof Shared>;

export const Incident = z.strictObject({
  id: Id,
  node_id: Id.nullable().describe("Null: of several nodes, which are in `nodes`."),
  node_name: z.string().nullable(),
  part_of: Id.nullable().describe("The incident of several nodes that this one is a symptom of."),
  shared: Shared.nullable().describe("Of an incident of several nodes: what they share."),
  node_count: z.int().describe("Of your organization's nodes that are affected, or were."),
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

export const MOST_LISTED_NODES = 200;

export const IncidentDetail = Incident.extend({
  nodes: z
    .array(z.strictObject({ id: Id, name: z.string(), incident_id: Id, state: IncidentState }))
    .describe(
      `Of an incident of several nodes, those that are still affected first; at most ${MOST_LISTED_NODES}.`,
    ),
  episodes: z.array(z.string()).describe("Correlation ids under which the host recorded it."),
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
    part_of: Id.optional().describe("Only symptoms of this incident."),
    episode: Text.max(64).optional().describe("Only those that a host recorded under this correlation id."),
  }),
  answer: pageOf(Incident),
});

export const PlatformIncident = z.strictObject({
  id: Id,
  state: IncidentState,
  reason: z.string(),
  ...reasonFields,
  shared: Shared,
  began_at: Time,
  opened_at: Time,
  closed_at: Time.nullable(),
  node_count: z.int().describe("At present; of a closed one, at last."),
  organization_count: z.int(),
});
export type PlatformIncident = z.infer<typeof PlatformIncident>;

export const listPlatformIncidents = endpoint({
  name: "listPlatformIncidents",
  noun: "incidents",
  method: "GET",
  path: "/v1/platform/incidents",
  summary: "List common causes across all organizations, newest first",
  access: "operator",
  query: PageQuery.extend({ state: IncidentState.optional() }),
  answer: pageOf(PlatformIncident),
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
