// Kills the supervisor, the api and the postmaster by turns at random moments while clients write,
// and checks after every kill that it all comes back by itself and that no acknowledged row is
// missing. The same seed gives the same victims and the same waits.

import { readFileSync } from "node:fs";
import { type Installation, openInstallation, type Started, until } from "../../../testkit/processes/holdfast.ts";
import { randomFrom } from "./random.ts";
import {
  countDoubled,
  createTortureOrganization,
  findLost,
  startWriting,
  type Target,
  type Writers,
} from "./writers.ts";

const victims = ["supervisor", "api", "postmaster"] as const;
type Victim = (typeof victims)[number];

export type TortureReport = {
  seed: number;
  rounds: number;
  acknowledged: number;
  repeated: number;
  lost: string[];
  doubled: number;
  refusals: readonly string[];
  /** From the kill to the next acknowledged write, in ms. */
  recoveries: Record<Victim, number[]>;
};

type Stage = { installation: Installation; up: Started; target: Target; orgId: string; random: () => number };

export type TortureOptions = { rounds: number; seed: number; onRound?(text: string): void };

export async function torture(options: TortureOptions): Promise<TortureReport> {
  const installation = openInstallation();
  try {
    const up = installation.up();
    const target = await targetOf(installation, up);
    const orgId = await createTortureOrganization(target);
    const stage: Stage = { installation, up, target, orgId, random: randomFrom(options.seed) };
    const writers = startWriting({ orgId, writers: 4, target: () => stage.target });
    try {
      return await runRounds(stage, writers, options);
    } finally {
      await writers.stop();
    }
  } finally {
    await installation.cleanUp();
  }
}

async function runRounds(stage: Stage, writers: Writers, options: TortureOptions): Promise<TortureReport> {
  const { orgId } = stage;
  const recoveries: TortureReport["recoveries"] = { supervisor: [], api: [], postmaster: [] };
  let checked = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    const victim = victims[round % victims.length] ?? "supervisor";
    const recovery = await killOnce(stage, writers, victim);
    recoveries[victim].push(recovery);
    const acknowledged = [...writers.acknowledged];
    const lost = await findLost(stage.target, orgId, acknowledged.slice(checked));
    checked = acknowledged.length;
    options.onRound?.(
      `round ${round + 1}: killed ${victim}, writing again after ${recovery} ms, ` +
        `${checked} acknowledged, ${lost.length} lost`,
    );
    if (lost.length > 0) break;
  }
  await writers.stop();
  return {
    seed: options.seed,
    rounds: options.rounds,
    acknowledged: writers.acknowledged.size,
    repeated: writers.repeated(),
    lost: await findLost(stage.target, orgId, writers.acknowledged),
    doubled: await countDoubled(stage.target, orgId),
    refusals: writers.refusals,
    recoveries,
  };
}

/** Kills at a random moment of writing; returns the time until the next acknowledged write. */
async function killOnce(stage: Stage, writers: Writers, victim: Victim): Promise<number> {
  const { installation, random } = stage;
  const before = writers.acknowledged.size;
  await until(() => writers.acknowledged.size > before);
  await pause(random() * 250);
  const started = performance.now();
  if (victim === "supervisor") await killSupervisor(stage);
  else
    process.kill(
      victim === "api" ? (installation.upFile().children["api"]?.pid ?? 0) : installation.postmaster(),
      "SIGKILL",
    );
  const atKill = writers.acknowledged.size;
  // Answers that were under way may still arrive; more than one per writer means that it works again.
  await until(() => writers.acknowledged.size > atKill + 4);
  return Math.round(performance.now() - started);
}

/** Every other time the start that follows is killed too, somewhere in its middle. */
async function killSupervisor(stage: Stage): Promise<void> {
  const { installation, random } = stage;
  const kill = async () => {
    stage.up.process.kill("SIGKILL");
    await stage.up.ended;
  };
  await kill();
  stage.up = installation.up();
  if (random() < 0.5) {
    await pause(random() * 900);
    await kill();
    stage.up = installation.up();
  }
  stage.target = await targetOf(installation, stage.up);
}

async function targetOf(installation: Installation, up: Started): Promise<Target> {
  const { api_url } = await up.ready;
  return { url: api_url, token: readFileSync(`${installation.dataDir}/operator-token`, "utf8").trim() };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
