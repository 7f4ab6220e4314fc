// The fleet: all nodes of an organization at once. Counts by state, what unhealthy nodes have in
// common, and a picture of a few bytes per node.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { userStates } from "../reasons/vocabulary.ts";
import { sharedAttributes } from "./incidents.ts";

/** One for each node that is not retired, the worst first. The first three need a person. */
export const fleetStates = ["silent", "troubled", "fenced", "draining", "joining", "fine"] as const;
export const FleetState = z.enum(fleetStates);
export type FleetState = z.infer<typeof FleetState>;

export const notFineStates: readonly FleetState[] = ["silent", "troubled", "fenced"];

/** What nodes are looked for by. Several together narrow it down. */
export const FleetFilter = z.strictObject({
  state: z
    .enum([...fleetStates, "not_fine", "present"])
    .optional()
    .describe(
      "`silent`: offline; `troubled`: degraded; `fenced`: quarantined; " +
        "`draining`; `joining`: enrolling; `fine`: healthy; `not_fine`: one of the first three; `present`: not retired.",
    ),
  attention: Text.min(1).max(200).optional().describe("Only nodes with this problem (a reason code)."),
  version: Text.min(1).max(200).optional().describe("Only nodes whose agent has this version."),
  capability: Text.min(1)
    .max(200)
    .optional()
    .describe("Only nodes whose agent has this capability, or one of these: `os_users,own_account`."),
  block: Text.min(1).max(64).optional().describe("Only nodes in this address block: `10.0.5.0/24`."),
  search: Text.min(1)
    .max(100)
    .optional()
    .describe("Part of the name, host name or address, or the start of the id."),
});
export type FleetFilter = z.infer<typeof FleetFilter>;

/** An open incident of several nodes, as the classifier found it. */
const CommonCause = z.strictObject({
  incident_id: Id,
  attribute: z.enum(sharedAttributes),
  value: z.string().nullable(),
  count: z.int().describe("Of the nodes that have the problem, those that are part of this incident."),
  sentence: z.string().describe("What your nodes have in common, in words."),
});

/** One reason, and the nodes that have it. */
const Trouble = z.strictObject({
  code: z.string(),
  ...reasonFields,
  user_state: z.enum(userStates),
  message: z.string(),
  next_step: z.string(),
  count: z.int(),
  /** When it began on the first and on the last of them; null: unknown. */
  first_at: Time.nullable(),
  last_at: Time.nullable(),
  /** The common causes that explain it on some of them, the one with the most nodes first. */
  common: z.array(CommonCause),
});
export type Trouble = z.infer<typeof Trouble>;

/** Why nothing acts on many nodes at present. */
export const brakeReasons = ["ca_mismatch", "control_plane_outage", "fleet_lost"] as const;

const Brake = z.strictObject({ why: z.enum(brakeReasons), message: z.string() });

export const Fleet = z.strictObject({
  at: Time,
  /** Nodes that are not retired. */
  total: z.int(),
  /** Of them, those that the filters let through. All that follows is about these. */
  matching: z.int(),
  not_fine: z.int(),
  states: z.strictObject(
    Object.fromEntries(fleetStates.map((state) => [state, z.int()])) as Record<FleetState, z.ZodInt>,
  ),
  /** By severity, then the most frequent. */
  troubles: z.array(Trouble),
  /** Offline nodes whose cause is not classified yet. */
  pending: z.int(),
  versions: z.array(z.strictObject({ value: z.string(), count: z.int() })),
  capabilities: z.array(z.strictObject({ value: z.string(), count: z.int() })),
  /** The open incident in which most nodes of the installation have the same trouble at once: it is hardly theirs. */
  own_side: z.strictObject({ incident_id: Id, message: z.string(), next_step: z.string() }).nullable(),
  /** The control plane is suspected, over all organizations: notifications wait. Null: it is not. */
  brake: Brake.nullable(),
});
export type Fleet = z.infer<typeof Fleet>;

export const getFleet = endpoint({
  name: "getFleet",
  noun: "fleet",
  method: "GET",
  path: "/v1/fleet",
  summary: "Summarize the organization's nodes: counts by state, reasons, and what unhealthy nodes have in common",
  access: { scope: "nodes:read" },
  query: FleetFilter,
  answer: Fleet,
});

/** By column, sorted by name; see `public/fleet-picture.ts` for how to read it. */
export const FleetPicture = z.strictObject({
  /** Pass it as `since` to get only what changed. */
  version: z.string(),
  at: Time,
  /** All of the nodes; otherwise those that changed, and the names of those that are gone. */
  whole: z.boolean(),
  gone: z.array(z.string()),
  /** Each name as the count of characters it shares with the one before, in base 36, and the rest. */
  names: z.string(),
  kinds: z.array(
    z.strictObject({ state: FleetState, reason: z.string().nullable(), version: z.string().nullable() }),
  ),
  blocks: z.array(z.string()),
  /** Of each node: which of the kinds, and which of the blocks; -1: none. */
  kind: z.array(z.int()),
  block: z.array(z.int()),
  /** Of each node that is not fine, in order: how many seconds it has been so at the time `at`; -1: not known. */
  since: z.array(z.int()),
});
export type FleetPicture = z.infer<typeof FleetPicture>;

export const getFleetPicture = endpoint({
  name: "getFleetPicture",
  noun: "fleet",
  method: "GET",
  path: "/v1/fleet/picture",
  summary: "Return every node with its state in a few bytes, for drawing thousands of them",
  description: "With `since` and no other filter, returns only what changed since that version.",
  access: { scope: "nodes:read" },
  query: FleetFilter.extend({
    since: Text.min(1).max(64).optional().describe("`version` of the last response."),
  }),
  answer: FleetPicture,
});

/** How far ahead the points of a forecast reach. */
export const FORECAST_HOURS = 48;

const ForecastPoint = z.strictObject({
  at: Time,
  lost: z.int().describe("Nodes whose certificate has expired by then, if no certificates are issued until then."),
  recovering: z.int().describe("Of them, those with a recovery token that is still current then."),
});
export type ForecastPoint = z.infer<typeof ForecastPoint>;

export const FleetForecast = z.strictObject({
  at: Time,
  nodes: z.int().describe("Nodes with a valid certificate now."),
  /** The point at `until`. */
  until: ForecastPoint,
  message: z.string(),
  points: z.array(ForecastPoint).describe(`For each full hour from now on, ${FORECAST_HOURS} hours ahead.`),
});
export type FleetForecast = z.infer<typeof FleetForecast>;

export const getFleetForecast = endpoint({
  name: "getFleetForecast",
  noun: "fleet",
  method: "GET",
  path: "/v1/fleet/forecast",
  summary: "Forecast how many nodes lose their identity if the control plane stays down",
  description:
    "A node whose certificate expires while no certificates are issued is locked out. It returns by itself if it has a current recovery token.",
  access: { scope: "nodes:diagnose" },
  query: z.strictObject({
    until: Time.optional().describe(
      `When the control plane is back: within the next ${FORECAST_HOURS} hours. Default: in 24 hours.`,
    ),
  }),
  answer: FleetForecast,
});
