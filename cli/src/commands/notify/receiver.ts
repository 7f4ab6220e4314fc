// holdfast notify receiver create, list, remove.

import { createReceiver, listReceivers, removeReceiver } from "@holdfast/contracts/endpoints/notify";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { ago, printResult, table } from "../../output.ts";

type CreateOptions = ServerOptions & { url?: string; mail?: string };

export function addReceiver(command: Command): void {
  const receiver = command.command("receiver").description("who gets messages");
  withServerOptions(receiver.command("create"))
    .description("add a webhook or a mail address")
    .option("--url <url>", "of a webhook, with https://; its secret is shown once")
    .option("--mail <address>", "a mail address")
    .action(create);
  withServerOptions(receiver.command("list"))
    .description("list receivers, newest first")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listReceivers, {}), ({ items }) =>
        items.length === 0
          ? "No receivers yet. Add one: holdfast notify receiver create --mail ops@example.com"
          : table(items, [
              { title: "id", of: (row) => row.id },
              { title: "kind", of: (row) => row.kind },
              { title: "address", of: (row) => row.address },
              {
                title: "last delivered",
                of: (row) => (row.last_delivered_at ? ago(row.last_delivered_at) : "never"),
              },
              { title: "last failed", of: (row) => row.last_failed_at && ago(row.last_failed_at) },
              { title: "created by", of: (row) => row.created_by },
            ]),
      );
    });
  withServerOptions(receiver.command("remove"))
    .description("remove a receiver; messages that it has not accepted yet are cancelled")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(removeReceiver, { params: { receiver_id: id } });
      printResult(options, { id, removed: true }, () => `Receiver ${id} removed.`);
    });
}

async function create({ url, mail, ...options }: CreateOptions): Promise<void> {
  if ((url === undefined) === (mail === undefined)) throw new UsageError("Give either --url or --mail.");
  const client = await connect(options);
  const created = await client(createReceiver, { body: { url, mail } });
  printResult(options, created, ({ id, address, secret }) =>
    [
      `Receiver ${id} created: ${address}`,
      ...(secret === null ? [] : [secret, "Save it now: it signs the messages, and it is not shown again."]),
      `Test it: holdfast notify test ${id}`,
    ].join("\n"),
  );
}
