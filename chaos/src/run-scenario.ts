// Runs one scenario in a lab of its own and judges it.

import { join } from "node:path";
import { closeLab, type Lab, openLab, type Site } from "./lab/lab.ts";
import type { Scenario, ScenarioResult } from "./scenario.ts";
import { type Told, tellStory } from "./story.ts";
import { within } from "./until.ts";

/** Whatever hangs in it. */
const LONGEST_SECONDS = 300;
/** The longest that an agent waits between two attempts, whatever it was told. */
const RECOVERED_SECONDS = 66;

export async function runScenario(
  scenario: Scenario,
  options: { site: Site; number: number /** Where logs of a failed one go. */; keepIn: string },
): Promise<ScenarioResult> {
  const started = performance.now();
  const directory = join(options.site.directory, `lab${options.number}`);
  const keep = join(options.keepIn, scenario.name);
  let lab: Lab | undefined;
  let told: Told | undefined;
  let error: Error | undefined;
  try {
    lab = await openLab(options.site, options.number, scenario.lab ?? {});
    const telling = tellStory(lab);
    told = telling.told;
    try {
      await within("the end of the scenario", LONGEST_SECONDS, scenario.run(telling.story));
    } finally {
      await telling.mends();
    }
    judge(scenario, told);
  } catch (problem) {
    error = problem as Error;
  }
  await closeLab(lab, directory, error ? keep : undefined);
  const first = told?.sightings[0];
  const since = (from?: number, to?: number) =>
    from === undefined || to === undefined ? null : tenths(to - from);
  return {
    name: scenario.name,
    ok: error === undefined,
    hop: first?.hop ?? null,
    signal: first?.signal ?? null,
    seconds: first ? tenths(first.seconds * 1000) : null,
    correlation_id: told?.correlationId ?? null,
    seen: first ? { by: first.by, reason: first.reason, owner: first.owner, next_step: first.nextStep } : null,
    recovered_seconds: since(told?.mendedAt, told?.recoveredAt),
    took_seconds: tenths(performance.now() - started),
    notes: [...(told?.sightings.slice(1).map(noteOf) ?? []), ...(told?.notes ?? [])],
    ...(error ? { error: error.message, logs: keep } : {}),
  };
}

function judge({ expect }: Scenario, { sightings, correlationId, mendedAt, recoveredAt }: Told): void {
  const [first] = sightings;
  if (!first) throw new Error("nobody saw anything");
  if (first.hop !== expect.hop || first.signal !== expect.signal) {
    throw new Error(`seen was ${first.hop}, ${first.signal}; it should be ${expect.hop}, ${expect.signal}`);
  }
  if (first.seconds > expect.seconds) {
    throw new Error(
      `it was seen after ${first.seconds.toFixed(1)} s; that should take ${expect.seconds} s at most`,
    );
  }
  if (mendedAt !== undefined && recoveredAt !== undefined && recoveredAt - mendedAt > RECOVERED_SECONDS * 1000) {
    throw new Error(`after the repair it took more than ${RECOVERED_SECONDS} s until the task had succeeded`);
  }
  if (correlationId === undefined) throw new Error("no task was given");
}

function noteOf({ by, reason, seconds }: Told["sightings"][number]): string {
  return `${by} sees ${reason} after ${seconds.toFixed(1)} s`;
}

function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}
