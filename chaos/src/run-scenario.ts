// Runs one scenario in a lab of its own, judges what it gathered, and then judges the judgement.

import { join } from "node:path";
import type { Evidence } from "./evidence.ts";
import { blindSpots, falsify } from "./falsify.ts";
import { judge } from "./judge.ts";
import { closeLab, type Lab, openLab, type Place, type Site } from "./lab/lab.ts";
import { expectedOf, labelOf, type RunOf, type Scenario, type ScenarioResult } from "./scenario.ts";
import { type StoryRun, startStory } from "./story.ts";
import { within } from "./until.ts";

/** Whatever hangs in it. */
const LONGEST_SECONDS = 900;

export async function runScenario(
  wanted: RunOf<Scenario>,
  options: { place: Place; number: number /** Where logs of a failed one go. */; keepIn: string },
): Promise<ScenarioResult> {
  const started = performance.now();
  const { scenario, link, falsify: falsifies } = wanted;
  const site: Site = { ...options.place, link, falsify: falsifies };
  const directory = join(site.directory, `lab${options.number}`);
  const keep = join(options.keepIn, labelOf(wanted).replaceAll(":", "-"));
  let lab: Lab | undefined;
  let run: StoryRun | undefined;
  const judged = { evidence: undefined as Evidence | undefined, falsified: 0 };
  const problems: string[] = [];
  const expected = expectedOf(scenario, link);
  try {
    lab = await openLab(site, options.number, scenario.lab ?? {});
    run = startStory(lab, expected);
    try {
      await within("the end of the scenario", LONGEST_SECONDS, scenario.run(run.story));
    } finally {
      await run.repairs();
    }
    const evidence = await run.evidence();
    if (!evidence) throw new Error("the scenario ended without a look before and after the repair, and a retry");
    judged.evidence = evidence;
    problems.push(...judge(expected, evidence));
    if (problems.length === 0) {
      const falsified = falsify(evidence);
      judged.falsified = falsified.length;
      const unnoticed = blindSpots((one) => judge(expected, one), falsified);
      problems.push(...unnoticed.map((field) => `the judgement does not notice that this is false: ${field}`));
    }
  } catch (error) {
    problems.push((error as Error).message);
  }
  await closeLab(lab, directory, problems.length > 0 ? keep : undefined);
  const { evidence = null, falsified } = judged;
  const first = evidence?.sightings[0];
  return {
    name: scenario.name,
    rows: [],
    ...{ link, falsify: falsifies },
    ok: problems.length === 0,
    hop: first?.hop ?? null,
    signal: first?.signal ?? null,
    seconds: first?.seconds ?? null,
    correlation_id: first?.correlation_id ?? null,
    recovered_seconds: evidence?.retry.seconds ?? null,
    took_seconds: Math.round((performance.now() - started) / 100) / 10,
    falsified,
    evidence,
    notes: run?.notes ?? [],
    problems,
    ...(problems.length > 0 ? { logs: keep } : {}),
  };
}
