// A message that leaves the product: the body of a webhook, and what a mail is written from. `x-holdfast-signature` is the
// HMAC-SHA256 of the receiver's secret over `<x-holdfast-timestamp>.<body>`; docs/runbooks/notifications.md says how to check it.

import { z } from "zod";
import { Id, Time } from "../fields.ts";
import { ownerIds } from "../reasons/owners.ts";
import { nextActionIds, severities, userStates } from "../reasons/vocabulary.ts";

const notificationEvents = [
  "incident.opened",
  "incident.recovered",
  /** By the api itself, which cannot store anything then. */
  "database.unreachable",
  "database.recovered",
  "receiver.test",
] as const;
export const NotificationEvent = z.enum(notificationEvents);
export type NotificationEvent = z.infer<typeof NotificationEvent>;

/** Of the nodes of a message. */
export const MOST_NAMED_NODES = 20;

export const Notification = z.strictObject({
  event: NotificationEvent,
  at: Time.describe("When it happened, not when it was sent."),
  title: z.string(),
  text: z.string().describe("What happened, to what, and what to do now."),
  severity: z.enum(severities).nullable(),
  organization: z.strictObject({ id: Id, slug: z.string(), name: z.string() }).nullable(),
  reason: z.string().nullable(),
  user_state: z.enum(userStates).nullable(),
  owner: z.enum(ownerIds).nullable(),
  next_action: z.enum(nextActionIds).nullable(),
  incident_id: Id.nullable().describe("Null: several, of `nodes`, or none."),
  node_count: z.int(),
  nodes: z
    .array(z.strictObject({ id: Id, name: z.string(), incident_id: Id }))
    .describe(`The first ${MOST_NAMED_NODES} of them.`),
  began_at: Time.nullable(),
  recovered_at: Time.nullable(),
  url: z.string().nullable().describe("Where to read more. Null: HOLDFAST_PUBLIC_URL is not set."),
});
export type Notification = z.infer<typeof Notification>;

export const deliveryHeaders = {
  /** Stays the same when a message is sent again. */
  id: "x-holdfast-delivery",
  event: "x-holdfast-event",
  /** Seconds since 1970, when it was sent. */
  timestamp: "x-holdfast-timestamp",
  /** `v1=` and the hexadecimal HMAC-SHA256. */
  signature: "x-holdfast-signature",
} as const;
