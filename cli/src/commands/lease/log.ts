// holdfast lease log: what a VM has written to its serial port. With --follow until the VM is gone.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { readLeaseLog } from "@holdfast/contracts/endpoints/leases";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";

type Piece = AnswerOf<typeof readLeaseLog>;
type LogOptions = ServerOptions & { follow?: boolean };

const WAIT_SECONDS = 20;
/** A VM that is not there yet has nothing to wait for on a host. */
const LOOK_MS = 1_000;

export function addLog(lease: Command): void {
  withServerOptions(lease.command("log"))
    .description("print the serial log of a VM; of one that is gone, the end that was kept")
    .argument("<id>")
    .option("-f, --follow", "go on until the VM is gone")
    .action(printLog);
}

async function printLog(id: string, options: LogOptions): Promise<void> {
  const client = await connect(options);
  const read = (from?: string): Promise<Piece> =>
    client(readLeaseLog, {
      params: { lease_id: id },
      query: from === undefined ? {} : { from, wait_seconds: WAIT_SECONDS },
    });
  let piece = await read();
  print(piece, options);
  while (options.follow && !piece.ended) {
    const { next } = piece;
    if (next === null) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    piece = await read(next ?? undefined);
    print(piece, options);
  }
}

/** With --json one object a piece. */
function print(piece: Piece, { json }: ServerOptions): void {
  if (json) return void process.stdout.write(`${JSON.stringify(piece)}\n`);
  if (piece.skipped) process.stderr.write("Output is missing here: the log on the host is limited.\n");
  process.stdout.write(piece.text);
}
