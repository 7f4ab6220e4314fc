// holdfast notify history: the messages that were sent, and what became of them.

import {
  type Delivery,
  DeliveryState,
  listDeliveries,
  listPlatformDeliveries,
} from "@holdfast/contracts/endpoints/notify";
import { UsageError } from "@holdfast/kit/settings";
import { type Command, Option } from "commander";
import { clientOf, connect, findServer, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { ago, nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";

type HistoryOptions = ServerOptions & {
  receiver?: string;
  state?: DeliveryState;
  installation?: boolean;
  limit?: number;
  cursor?: string;
};

export function addHistory(command: Command): void {
  withServerOptions(command.command("history"))
    .description("list messages to receivers, newest first")
    .option("--receiver <id>", "only those to this receiver")
    .addOption(new Option("--state <state>", "only these").choices(DeliveryState.options))
    .option("--installation", "to the receivers that the settings of the installation name (operator only)")
    .option("--limit <number>", "at most as many", wholeNumber({ min: 1, max: 200 }))
    .option("--cursor <cursor>", "the next page, as printed by the previous one")
    .action(async ({ receiver, state, installation, limit, cursor, ...options }: HistoryOptions) => {
      if (installation && receiver !== undefined) throw new UsageError("--installation takes no receiver.");
      const query = { ...(state ? { state } : {}), ...(limit ? { limit } : {}), ...(cursor ? { cursor } : {}) };
      const page = installation
        ? await clientOf(findServer(options))(listPlatformDeliveries, { query })
        : await (await connect(options))(listDeliveries, {
            query: { ...query, ...(receiver ? { receiver_id: receiver } : {}) },
          });
      printResult(options, page, describeHistory);
    });
}

/** Exported for its test. */
export function describeHistory(page: { items: readonly Delivery[]; next_cursor: string | null }): string {
  const { items, next_cursor } = page;
  if (items.length === 0) return "No messages.";
  return (
    table(items, [
      { title: "time", of: (row) => ago(row.created_at) },
      { title: "state", of: (row) => row.state },
      { title: "message", of: ({ severity, title }) => (severity ? `${severity} ${title}` : title) },
      { title: "receiver", of: (row) => row.address },
      { title: "attempts", of: (row) => String(row.attempts) },
      { title: "answer", of: (row) => row.answer },
      { title: "id", of: (row) => row.id },
    ]) + nextPage(items, next_cursor)
  );
}
