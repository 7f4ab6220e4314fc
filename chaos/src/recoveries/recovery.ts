// A recovery: something breaks a node's identity or its way to the server, and an operator, or nobody, brings it back. What it
// must come to is the same for all: one incident from the fault to a green checklist, and a trace that tells it in order.

import type { Lab } from "../lab/lab.ts";
import type { RecoveryStory } from "./story.ts";

export type Recovery = {
  name: string;
  title: string;
  run(story: RecoveryStory): Promise<void>;
};

/** Recoveries of one node, one after the other. Those of another node run beside them. */
export type Track = { node: "node" | "second"; recoveries: readonly Recovery[] };

/** One control plane, for several recoveries. */
export type Stage = {
  name: string;
  open: Parameters<typeof import("../lab/lab.ts").openLab>[2];
  prepare?(lab: Lab): Promise<void>;
  /** Side by side. */
  tracks: readonly Track[];
  /** What concerns every node comes last, alone. */
  last?: readonly Recovery[];
};

export type RecoveryResult = {
  name: string;
  title: string;
  ok: boolean;
  /** What the fault was classified as, in the order in which that was found. */
  reasons: string[];
  incident_id: string | null;
  /** From the fault to the end of the incident. */
  seconds: number | null;
  notes: string[];
  problems: string[];
  logs?: string;
};
