// A scenario: one thing breaks, and what everybody concerned must get.

import type { Evidence } from "./evidence.ts";
import type { Expected } from "./judge.ts";
import type { LabOptions, Link } from "./lab/lab.ts";
import type { Drill, DrillEvidence, RowOfDrill } from "./runbook/drill.ts";
import type { Story } from "./story.ts";

export type Scenario = {
  name: string;
  /** To a person, in one line. */
  title: string;
  expect: Expected;
  /** With agents that poll, where that makes a difference. */
  polling?: Expected;
  lab?: LabOptions;
  run(story: Story): Promise<void>;
};

/** A scenario as it is run: as agents connect by default, or otherwise; and with false records, for the self-test. */
export type RunOf<Kind> = { scenario: Kind; link: Link; falsify: boolean };
export type Run = RunOf<Scenario | Drill>;

export const isDrill = (run: Run): run is RunOf<Drill> => "rows" in run.scenario;

/** As it is written on the command line, such as `dns-refused:poll`. */
export function labelOf({ scenario, link, falsify }: Run): string {
  return [scenario.name, ...(link === "poll" ? ["poll"] : []), ...(falsify ? ["falsify"] : [])].join(":");
}

/** By which links its agents can be connected: an edge that answers or holds back single requests passes on no streams. */
export const linksOf = ({ lab }: Scenario | Drill): readonly Link[] => (lab?.edge ? ["poll"] : ["stream", "poll"]);

export function expectedOf({ expect, polling }: Scenario, link: Link): Expected {
  return link === "poll" ? (polling ?? expect) : expect;
}

export type ScenarioResult = {
  name: string;
  /** Of the runbook; none: it is no drill. */
  rows: readonly RowOfDrill[];
  link: Link;
  /** The run was falsified at the source: it must not be ok. */
  falsify: boolean;
  ok: boolean;
  /** Of the first expected sighting, as the product named them; null when it did not. */
  hop: string | null;
  signal: string | null;
  /** From the fault until it was seen. */
  seconds: number | null;
  /** The product's own, which leads to audit and logs. */
  correlation_id: string | null;
  /** From the repair until the user's retry had succeeded. */
  recovered_seconds: number | null;
  /** All of it, with making the lab. */
  took_seconds: number;
  /** How many falsified copies of the evidence were judged, and refused. */
  falsified: number;
  evidence: Evidence | DrillEvidence | null;
  notes: string[];
  /** Everything that was not as it should be. */
  problems: string[];
  /** Logs of the lab's processes, kept because it failed. */
  logs?: string;
};
