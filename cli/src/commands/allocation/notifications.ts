// holdfast allocation notifications: notices about the node behind an allocation, to its people.

import {
  type AllocationNotification,
  listAllocationNotifications,
} from "@holdfast/contracts/endpoints/allocations";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { localTime, nextPage, printResult } from "../../output.ts";
import { wholeNumber } from "../options.ts";

type ListOptions = ServerOptions & { limit: number; cursor?: string };

export function addNotifications(allocation: Command): void {
  withServerOptions(allocation.command("notifications"))
    .description("list the changes of an allocation's user state, newest first")
    .argument("<id or user@node>")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 20)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(async (wanted: string, options: ListOptions) => {
      const client = await connect(options);
      const { id, username, node_name } = await findAllocation(client, wanted);
      const { limit, cursor } = options;
      const page = await client(listAllocationNotifications, {
        params: { allocation_id: id },
        query: { limit, cursor },
      });
      printResult(options, page, ({ items, next_cursor }) =>
        items.length === 0
          ? `No notifications for ${username}@${node_name}.`
          : items.map(describe).join("\n\n") + nextPage(items, next_cursor),
      );
    });
}

function describe({ at, title, message, incident_id }: AllocationNotification): string {
  const incident = incident_id ? [`  holdfast incident show ${incident_id}`] : [];
  return [`${localTime(at)}  ${title}`, `  ${message}`, ...incident].join("\n");
}
