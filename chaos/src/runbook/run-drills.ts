// Runs the drills of one lab, one after the other, judges what each gathered, and then judges the judgement. After a failed one the next
// begins with a new lab.

import { join } from "node:path";
import { blindSpots, falsify } from "../falsify.ts";
import { closeLab, type Lab, openLab, type Place, type Site } from "../lab/lab.ts";
import { labelOf, type RunOf, type ScenarioResult } from "../scenario.ts";
import { within } from "../until.ts";
import type { Drill, DrillEvidence } from "./drill.ts";
import { judgeDrill } from "./judge.ts";
import { gather } from "./run-drill.ts";

type DrillRun = RunOf<Drill>;

/** Whatever hangs in it. */
const LONGEST_SECONDS = 900;

/** Those that share a lab. */
export function groupsOf(runs: readonly DrillRun[]): DrillRun[][] {
  const groups = Map.groupBy(runs, ({ scenario, link, falsify: lie }) => `${scenario.labName} ${link} ${lie}`);
  return [...groups.values()];
}

export async function runDrills(
  runs: readonly DrillRun[],
  options: {
    place: Place;
    /** Of a lab: no two of a run have the same. */
    newNumber: () => number;
    keepIn: string;
    onBegin: (run: DrillRun) => void;
    onEnd: (run: DrillRun, result: ScenarioResult) => void;
  },
): Promise<void> {
  let lab: Lab | undefined;
  let directory = "";
  for (const run of runs) {
    options.onBegin(run);
    const started = performance.now();
    const problems: string[] = [];
    let evidence: DrillEvidence | null = null;
    let falsified = 0;
    try {
      const site: Site = { ...options.place, link: run.link, falsify: run.falsify };
      if (!lab) {
        const number = options.newNumber();
        directory = join(options.place.directory, `lab${number}`);
        lab = await openLab(site, number, run.scenario.lab);
      }
      evidence = await within("the end of the drill", LONGEST_SECONDS, gather(run.scenario, lab));
      const judged = (one: DrillEvidence) => judgeDrill(run.scenario, one);
      problems.push(...judged(evidence));
      if (problems.length === 0) {
        const lies = falsify(evidence);
        falsified = lies.length;
        const unnoticed = blindSpots(judged, lies);
        problems.push(...unnoticed.map((field) => `the judgement does not notice that this is false: ${field}`));
      }
    } catch (error) {
      problems.push((error as Error).message);
    }
    const keep = join(options.keepIn, labelOf(run).replaceAll(":", "-"));
    if (problems.length > 0) {
      await closeLab(lab, directory, keep);
      lab = undefined;
    }
    options.onEnd(run, resultOf(run, { evidence, falsified, problems, keep, started }));
  }
  await closeLab(lab, directory);
}

type Ended = Pick<ScenarioResult, "falsified" | "problems"> & {
  evidence: DrillEvidence | null;
  keep: string;
  started: number;
};

function resultOf(run: DrillRun, { evidence, falsified, problems, keep, started }: Ended): ScenarioResult {
  const { scenario, link, falsify: isFalse } = run;
  const before = evidence?.preflight.before;
  return {
    ...{ name: scenario.name, rows: scenario.rows, link, falsify: isFalse, ok: problems.length === 0 },
    ...{ hop: before?.failed_hop ?? null, signal: before?.signal ?? null },
    ...{ seconds: evidence?.user.seconds ?? null, correlation_id: evidence?.user.correlation_id ?? null },
    recovered_seconds: evidence?.retry.seconds ?? null,
    took_seconds: Math.round((performance.now() - started) / 100) / 10,
    ...{ falsified, evidence, notes: [], problems },
    ...(problems.length > 0 ? { logs: keep } : {}),
  };
}
