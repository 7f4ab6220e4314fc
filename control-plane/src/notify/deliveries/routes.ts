// Deliveries over HTTP: of an organization for its administrators, of the installation for its operator.

import {
  getDelivery,
  listDeliveries,
  listPlatformDeliveries,
  type ReceiverKind,
  testPlatformReceivers,
} from "@holdfast/contracts/endpoints/notify";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { operatorRoute, orgRoute } from "../../api/route.ts";
import { testMessage } from "../message.ts";
import {
  type DeliveryRow,
  insertDeliveries,
  presentDelivery,
  selectDeliveries,
  selectDeliveriesById,
  selectDelivery,
} from "./queries.ts";

export function deliveryRoutes(api: ApiContext): void {
  const addressOf = (kind: ReceiverKind) =>
    api.notify.installation.find((one) => one.kind === kind)?.address ?? "no longer set";
  const toItem = (row: DeliveryRow) => presentDelivery(row, addressOf);

  orgRoute(api, listDeliveries, async ({ tx, query: { limit, cursor, state, receiver_id: receiverId } }) => {
    const before = pageStart(listDeliveries, cursor);
    const rows = await selectDeliveries(tx, { before, limit, state, receiverId });
    return toPage(listDeliveries, rows, { limit, idOf: ({ id }) => id, toItem });
  });

  orgRoute(api, getDelivery, async ({ tx, params }) => {
    const row = await selectDelivery(tx, params.delivery_id);
    if (!row) throw new ApiError("not_found");
    return toItem(row);
  });

  operatorRoute(api, listPlatformDeliveries, async ({ tx, query: { limit, cursor, state } }) => {
    const before = pageStart(listPlatformDeliveries, cursor);
    const rows = await selectDeliveries(tx, { before, limit, state, ofInstallation: true });
    return toPage(listPlatformDeliveries, rows, { limit, idOf: ({ id }) => id, toItem });
  });

  operatorRoute(api, testPlatformReceivers, async ({ tx, touched, afterCommit }) => {
    const message = testMessage(null, new Date());
    const subject = `test ${uuidv7()}`;
    const queued = await insertDeliveries(
      tx,
      api.notify.installation.map(({ kind }) => ({ receiver: null, kind, subject, message })),
    );
    touched({ type: "receiver", name: "installation" }, { deliveries: queued });
    afterCommit(() => api.signals.publish("delivery", queued));
    return { items: (await selectDeliveriesById(tx, queued)).map(toItem) };
  });
}
