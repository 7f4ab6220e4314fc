// Preflights: whether a node and an allocation's terminal work, hop by hop. Run by the api, or run with `holdfast preflight`
// and handed in.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { preflightHops } from "../preflight/checks.ts";
import { PreflightHopReport, PreflightReport, preflightResults } from "../preflight/report.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const preflightStates = ["running", "finished", "interrupted"] as const;
export type PreflightState = (typeof preflightStates)[number];

export const Preflight = z.strictObject({
  id: Id,
  node_id: Id,
  node_name: z.string(),
  allocation_id: Id.nullable().describe("Null: only the node was checked."),
  state: z.enum(preflightStates).describe("`interrupted`: the api that ran it stopped."),
  result: z.enum(preflightResults).nullable().describe("Null until it has finished."),
  failed_hop: z.enum(preflightHops).nullable(),
  run_from: z.enum(["control_plane", "command_line"]).describe("Where checks of public addresses were made from."),
  run_by: z.string(),
  correlation_id: z.string(),
  started_at: Time,
  finished_at: Time.nullable(),
  hops: z.array(PreflightHopReport).describe("Those that have an outcome so far."),
  report: PreflightReport.nullable().describe("Null until it has finished."),
});
export type Preflight = z.infer<typeof Preflight>;

export const startPreflight = endpoint({
  name: "startPreflight",
  noun: "preflights",
  method: "POST",
  path: "/v1/nodes/{node_id}/preflights",
  summary: "Run a preflight of a node, and of an allocation's terminal on it",
  description:
    "Returns at once; `GET /v1/preflights/{preflight_id}` shows each hop as it is checked. Public addresses are checked from " +
    "the control plane: that is no proof of what a browser reaches. With an allocation, a terminal is opened and closed.",
  access: { scope: "nodes:write" },
  action: "preflight.start",
  params: z.strictObject({ node_id: Id }),
  body: z.strictObject({ allocation_id: Id.optional().describe("Default: only the node is checked.") }),
  answer: Preflight,
  errors: ["conflict"],
});

export const addPreflightReport = endpoint({
  name: "addPreflightReport",
  noun: "preflights",
  method: "POST",
  path: "/v1/preflights",
  summary: "Hand in the report of `holdfast preflight`",
  description: "It is stored, and what it saw becomes evidence about the node.",
  access: { scope: "nodes:write" },
  action: "preflight.add",
  body: z.strictObject({ report: PreflightReport }),
  answer: Preflight,
});

export const listPreflights = endpoint({
  name: "listPreflights",
  noun: "preflights",
  method: "GET",
  path: "/v1/preflights",
  summary: "List preflights, newest first",
  access: { scope: "nodes:diagnose" },
  query: PageQuery.extend({
    node_id: Id.optional(),
    allocation_id: Id.optional(),
    result: z.enum(preflightResults).optional(),
  }),
  answer: pageOf(Preflight),
});

export const getPreflight = endpoint({
  name: "getPreflight",
  noun: "preflights",
  method: "GET",
  path: "/v1/preflights/{preflight_id}",
  summary: "Read a preflight",
  access: { scope: "nodes:diagnose" },
  params: z.strictObject({ preflight_id: Id }),
  answer: Preflight,
});
