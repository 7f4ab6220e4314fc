// Receivers over HTTP, for owners of an organization; and for its administrators to read.

import {
  createReceiver,
  listReceivers,
  MOST_RECEIVERS,
  removeReceiver,
  testReceiver,
} from "@holdfast/contracts/endpoints/notify";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../../api/context.ts";
import { type OrgCall, orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import { type Limit, takeAttempt } from "../../mechanisms/rate-limit.ts";
import { makeSecret } from "../../mechanisms/secrets.ts";
import { nameOf } from "../../people/actor.ts";
import { insertDeliveries, presentDelivery, selectDelivery } from "../deliveries/queries.ts";
import { type Organization, testMessage } from "../message.ts";
import { AddressRefused, displayOf, parseWebhookUrl } from "../send/addresses.ts";
import {
  countReceivers,
  endReceiver,
  insertReceiver,
  type NewReceiver,
  presentReceiver,
  selectReceivers,
} from "./queries.ts";

/** Of an organization: a test sends to an address that somebody else may own. */
const tests: Limit = { attempts: 20, windowSeconds: 15 * 60 };

export function receiverRoutes(api: ApiContext): void {
  orgRoute(api, listReceivers, async ({ tx }) => ({ items: (await selectReceivers(tx)).map(presentReceiver) }));

  orgRoute(api, createReceiver, async (call) => create(api, call), {
    // Resolving a name takes time, and needs no transaction.
    waitFirst: async ({ body }) => {
      if (body.url !== undefined) await refused(() => api.notify.sender.check(body.url ?? ""));
    },
  });

  orgRoute(api, removeReceiver, async ({ tx, params, touched, afterCommit }) => {
    const address = await endReceiver(tx, params.receiver_id);
    if (address === undefined) throw new ApiError("not_found");
    touched({ type: "receiver", id: params.receiver_id, name: address });
    afterCommit(() => refresh(api));
    return undefined;
  });

  orgRoute(
    api,
    testReceiver,
    async ({ tx, org, params, touched, afterCommit }) => {
      const [receiver] = await selectReceivers(tx, params.receiver_id);
      if (!receiver) throw new ApiError("not_found");
      const { id, kind, address } = receiver;
      const message = testMessage(await organizationOf(tx, org.id), new Date());
      const subject = `test ${uuidv7()}`;
      const [queued = ""] = await insertDeliveries(tx, [
        { receiver: { id, orgId: org.id }, kind, subject, message },
      ]);
      const row = await selectDelivery(tx, queued);
      if (!row) throw new Error("a delivery is missing in its own transaction");
      touched({ type: "receiver", id, name: address }, { delivery_id: queued });
      afterCommit(() => api.signals.publish("delivery", [queued]));
      return presentDelivery(row, () => address);
    },
    { waitFirst: ({ org }) => takeAttempt(api.system, tests, "receiver.test", org.id) },
  );
}

async function create(
  api: ApiContext,
  { tx, body, org, actor, touched, afterCommit }: OrgCall<typeof createReceiver>,
) {
  if ((await countReceivers(tx, org.id)) >= MOST_RECEIVERS) {
    throw new ApiError("conflict", {
      message: `An organization has at most ${MOST_RECEIVERS} receivers.`,
      nextStep: "Remove a receiver that is no longer needed.",
    });
  }
  const id = uuidv7();
  const common = { id, orgId: org.id, creatorName: nameOf(actor) };
  const { receiver, secret } = await receiverOf(api, body, common);
  if ((await insertReceiver(tx, receiver)) === undefined) {
    throw new ApiError("name_taken", { message: `${receiver.address} is a receiver already.` });
  }
  const [row] = await selectReceivers(tx, id);
  if (!row) throw new Error("a receiver is missing in its own transaction");
  touched({ type: "receiver", id, name: receiver.address }, { kind: receiver.kind });
  afterCommit(() => refresh(api));
  return { ...presentReceiver(row), secret };
}

/** The other replicas do it in their next turn. */
function refresh({ notify, log }: Pick<ApiContext, "notify" | "log">): void {
  notify.cache.refresh().catch((error: unknown) => log.warn({ err: error }, "could not read the receivers again"));
}

async function receiverOf(
  { notify }: Pick<ApiContext, "notify">,
  { url: text, mail }: OrgCall<typeof createReceiver>["body"],
  common: Pick<NewReceiver, "orgId" | "creatorName"> & { id: string },
): Promise<{ receiver: NewReceiver; secret: string | null }> {
  if (text === undefined) {
    if (!notify.sender.hasMail) throw new ApiError("mail_not_configured");
    return { receiver: { ...common, kind: "mail", address: mail ?? "", sealed: null }, secret: null };
  }
  const url = parseWebhookUrl(text);
  const { secret } = makeSecret("webhook");
  const sealed = notify.vault.seal(common.id, { url: url.href, secret });
  return { receiver: { ...common, kind: "webhook", address: displayOf(url), sealed }, secret };
}

async function organizationOf(tx: Tx, id: string): Promise<Organization> {
  const [row] = await tx<Organization[]>`SELECT id, slug, name FROM organizations WHERE id = ${id}`;
  if (!row) throw new Error("an organization is missing in its own transaction");
  return row;
}

async function refused(check: () => Promise<unknown>): Promise<void> {
  try {
    await check();
  } catch (error) {
    const message = error instanceof AddressRefused ? error.message : "The name of this host cannot be resolved.";
    throw new ApiError("receiver_address_refused", {
      message,
      details: { fields: [{ field: "body.url", problem: message }] },
    });
  }
}
