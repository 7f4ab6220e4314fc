// Receivers of messages about incidents, and the messages that were sent to them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Email, Id, Text, Time } from "../fields.ts";
import { NotificationEvent } from "../public/notification.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { severities } from "../reasons/vocabulary.ts";

export const ReceiverKind = z.enum(["webhook", "mail"]);
export type ReceiverKind = z.infer<typeof ReceiverKind>;

/** Of an organization. */
export const MOST_RECEIVERS = 20;

export const Receiver = z.strictObject({
  id: Id,
  kind: ReceiverKind,
  address: z
    .string()
    .describe("The mail address; of a webhook only the origin, because the rest may be a secret."),
  created_by: z.string(),
  created_at: Time,
  last_delivered_at: Time.nullable(),
  last_failed_at: Time.nullable().describe("Null: the last attempt did not fail."),
});
export type Receiver = z.infer<typeof Receiver>;

export const DeliveryState = z.enum(["pending", "delivered", "failed", "cancelled"]);
export type DeliveryState = z.infer<typeof DeliveryState>;

export const Delivery = z.strictObject({
  id: Id.describe("Sent along as `x-holdfast-delivery`, the same each time."),
  receiver_id: Id.nullable().describe("Null: a receiver of the installation, which settings name."),
  kind: ReceiverKind,
  address: z.string(),
  event: NotificationEvent,
  title: z.string(),
  severity: z.enum(severities).nullable(),
  incident_id: Id.nullable(),
  state: DeliveryState,
  created_at: Time,
  attempts: z.int(),
  attempted_at: Time.nullable(),
  next_attempt_at: Time.nullable().describe("Null: there will be none."),
  delivered_at: Time.nullable(),
  answer: z
    .string()
    .nullable()
    .describe("What the receiver returned at the last attempt, shortened; or why it was not reached."),
});
export type Delivery = z.infer<typeof Delivery>;

const receiverId = z.strictObject({ receiver_id: Id });

export const listReceivers = endpoint({
  name: "listReceivers",
  noun: "receivers",
  method: "GET",
  path: "/v1/notify/receivers",
  summary: "List receivers of messages about incidents",
  access: { scope: "nodes:diagnose" },
  answer: z.strictObject({ items: z.array(Receiver) }),
});

export const createReceiver = endpoint({
  name: "createReceiver",
  noun: "receivers",
  method: "POST",
  path: "/v1/notify/receivers",
  summary: "Create a receiver: a webhook or a mail address",
  description:
    "It gets a message when an incident of severity P0, or one that requires security action, opens, and one when it is over. `secret` signs the messages to a webhook; it cannot be shown again.",
  access: { scope: "org:write" },
  action: "receiver.create",
  creates: true,
  body: z
    .strictObject({
      url: Text.min(1)
        .max(2_000)
        .optional()
        .describe("Of a webhook: an https:// URL. Redirects are not followed."),
      mail: Email.optional(),
    })
    .refine(({ url, mail }) => (url === undefined) !== (mail === undefined), "either url or mail is required"),
  answer: Receiver.extend({ secret: z.string().nullable().describe("Of a webhook. Shown once.") }),
  errors: ["receiver_address_refused", "mail_not_configured", "conflict", "name_taken"],
});

export const removeReceiver = endpoint({
  name: "removeReceiver",
  noun: "receivers",
  method: "DELETE",
  path: "/v1/notify/receivers/{receiver_id}",
  summary: "Remove a receiver",
  description: "Messages that it has not got yet are cancelled.",
  access: { scope: "org:write" },
  action: "receiver.remove",
  params: receiverId,
});

export const testReceiver = endpoint({
  name: "testReceiver",
  noun: "receivers",
  method: "POST",
  path: "/v1/notify/receivers/{receiver_id}/test",
  summary: "Send a test message",
  description:
    "The message is sent at once, and once only. Read the delivery to learn what the receiver returned.",
  access: { scope: "org:write" },
  action: "receiver.test",
  params: receiverId,
  answer: Delivery,
  errors: ["rate_limit_exceeded"],
});

const DeliveryQuery = PageQuery.extend({ state: DeliveryState.optional() });

export const listDeliveries = endpoint({
  name: "listDeliveries",
  noun: "deliveries",
  method: "GET",
  path: "/v1/notify/deliveries",
  summary: "List messages to receivers, newest first",
  access: { scope: "nodes:diagnose" },
  query: DeliveryQuery.extend({ receiver_id: Id.optional() }),
  answer: pageOf(Delivery),
  errors: ["invalid_cursor"],
});

export const getDelivery = endpoint({
  name: "getDelivery",
  noun: "deliveries",
  method: "GET",
  path: "/v1/notify/deliveries/{delivery_id}",
  summary: "Read a message to a receiver",
  access: { scope: "nodes:diagnose" },
  params: z.strictObject({ delivery_id: Id }),
  answer: Delivery,
});

export const listPlatformDeliveries = endpoint({
  name: "listPlatformDeliveries",
  noun: "deliveries",
  method: "GET",
  path: "/v1/platform/deliveries",
  summary: "List messages to the receivers of the installation, newest first",
  access: "operator",
  query: DeliveryQuery,
  answer: pageOf(Delivery),
  errors: ["invalid_cursor"],
});

export const testPlatformReceivers = endpoint({
  name: "testPlatformReceivers",
  noun: "deliveries",
  method: "POST",
  path: "/v1/platform/deliveries/test",
  summary: "Send a test message to the receivers of the installation",
  description: "Those that HOLDFAST_NOTIFY_WEBHOOK_URL and HOLDFAST_NOTIFY_MAIL_TO name.",
  access: "operator",
  action: "platform.test_receivers",
  answer: z.strictObject({ items: z.array(Delivery) }),
});
