// Notifications of allocations over HTTP, for whoever reaches the allocation.

import {
  type AllocationNotification,
  listAllocationNotifications,
} from "@holdfast/contracts/endpoints/allocations";
import { callerOf } from "../../allocations/access.ts";
import { readAllocation } from "../../allocations/read.ts";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { orgRoute } from "../../api/route.ts";
import { seesReasons } from "./redact.ts";

type Row = Omit<AllocationNotification, "at"> & { at: Date };

export function notificationRoutes(api: ApiContext): void {
  orgRoute(api, listAllocationNotifications, async (call) => {
    const { tx, params, query } = call;
    const { id } = await readAllocation(tx, callerOf(call), params.allocation_id, "view");
    const rows = await tx<Row[]>`
      SELECT id, allocation_id, state, title, message, at, incident_id FROM allocation_notifications
      WHERE allocation_id = ${id} AND id < ${pageStart(listAllocationNotifications, query.cursor)}
      ORDER BY id DESC LIMIT ${query.limit + 1}`;
    const withIncident = seesReasons(call);
    const toItem = (row: Row): AllocationNotification => ({
      ...row,
      at: row.at.toISOString(),
      incident_id: withIncident ? row.incident_id : null,
    });
    return toPage(listAllocationNotifications, rows, { limit: query.limit, idOf: (row) => row.id, toItem });
  });
}
