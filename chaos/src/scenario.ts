// A scenario: one thing breaks, and what an operator must see of it.

import type { Hop } from "@holdfast/contracts/diagnostics";
import type { LabOptions } from "./lab/lab.ts";
import type { Story } from "./story.ts";

export type Scenario = {
  name: string;
  /** To a person, in one line. */
  title: string;
  /** What the first sighting must be, and within how many seconds of the fault. */
  expect: { hop: Hop; signal: string; seconds: number };
  lab?: LabOptions;
  run(story: Story): Promise<void>;
};

export type ScenarioResult = {
  name: string;
  ok: boolean;
  /** As the product named them; null when it did not. */
  hop: Hop | null;
  signal: string | null;
  /** From the fault until it was seen. */
  seconds: number | null;
  /** Of the task that the operator gave, which is also in the audit. */
  correlation_id: string | null;
  /** Where it was seen, by which reason, whose it is and what the operator is told to do. */
  seen: { by: string; reason: string; owner: string | null; next_step: string } | null;
  /** From the repair until the task had succeeded. */
  recovered_seconds: number | null;
  /** All of it, with making the lab. */
  took_seconds: number;
  /** What was seen after that, and other notes of the story. */
  notes: string[];
  error?: string;
  /** Logs of the lab's processes, kept because it failed. */
  logs?: string;
};
