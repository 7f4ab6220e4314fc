// holdfast sim: a fleet of simulated nodes that enrolls like real ones, to see how an installation looks
// and behaves with many nodes. They are named sim-00001 and up, and are marked as simulated everywhere.

import { readFileSync } from "node:fs";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { createFleet } from "@holdfast/node-agent/sim/fleet";
import { chanceOf } from "@holdfast/node-agent/sim/random";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { exitCodes, Refusal } from "../../failure.ts";
import { printResult } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { simulateActivity } from "./activity.ts";
import { findSimulated, joinAll } from "./join.ts";
import { showProgress } from "./progress.ts";

type SimOptions = ServerOptions & { agents: number; seed: number; calm?: boolean };

/** Beside the connections: output, the public API, and second connections of busy nodes. */
const OTHER_FILES = 300;

export function simCommand(): Command {
  const sim = withServerOptions(new Command("sim"))
    .description("enroll simulated nodes and run them until Ctrl-C: some busy, some failing, some offline")
    .option("--agents <number>", "number of nodes", wholeNumber({ min: 1, max: 100_000 }), 100)
    .option("--seed <number>", "the same seed gives the same fleet", wholeNumber({ min: 0, max: 2 ** 31 }), 1)
    .option("--calm", "no tasks, failures or outages: nodes only stay connected")
    .action(run);
  withServerOptions(sim.command("remove"))
    .description("retire all simulated nodes of the organization")
    .action(async (_own: ServerOptions, command: Command) => remove(command.optsWithGlobals()));
  return sim;
}

async function run(options: SimOptions): Promise<void> {
  checkOpenFiles(options.agents);
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, interrupt);
  const client = await connect(options);
  const chance = chanceOf(options.seed, -1);
  const fleet = createFleet(options.calm ? {} : { random: chance.next });
  const progress = showProgress(options, fleet);
  try {
    const known = await findSimulated(client);
    const nodes = await joinAll({
      client,
      fleet,
      known,
      ...options,
      signal: stop.signal,
      onJoined: progress.joined,
    });
    if (!stop.signal.aborted) {
      progress.ready();
      await simulateActivity({ client, nodes, chance, calm: options.calm ?? false, signal: stop.signal });
    }
  } finally {
    progress.end();
    await fleet.stop();
  }
  const { agents } = fleet.status();
  printResult(options, { event: "stopped", agents }, () =>
    [
      `Stopped. ${agents} simulated nodes are still enrolled, and will be shown as offline.`,
      "Run the same command to bring them back, or `holdfast sim remove` to retire them.",
    ].join("\n"),
  );
  process.exitCode = exitCodes.done;
}

async function remove(options: ServerOptions): Promise<void> {
  const client = await connect(options);
  const nodes = await findSimulated(client);
  const ids = [...nodes.values()];
  const body = { change: "retire", reason: "the simulation is over" } as const;
  const lane = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop())
      await client(changeNode, { params: { node_id: id }, body });
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  printResult(options, { retired: nodes.size }, ({ retired }) =>
    retired === 0 ? "There are no simulated nodes." : `Retired ${retired} simulated nodes.`,
  );
}

/** Checked before any node is enrolled: a fleet of which half cannot connect is useless. */
function checkOpenFiles(agents: number): void {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
  if (Number.isNaN(limit) || agents + OTHER_FILES <= limit) return;
  throw new Refusal("too_many_open_files", {
    message: `${agents} connections need ${agents + OTHER_FILES} open files; the limit of this process is ${limit}.`,
    nextStep: `Raise the limit in this shell (\`ulimit -n ${agents + OTHER_FILES}\`), or simulate at most ${limit - OTHER_FILES} nodes.`,
  });
}
