// What a bench is: figures it measures on both sides, and a contest that measures them once per
// pass. Everything else (interleaving, medians, verdicts, printing, cleaning up) is not its business.

import type { Lab } from "./lab.ts";

export type Bench = {
  name: string;
  summary: string;
  figures: FigureSpec[];
  /** Unless --passes says otherwise. Many short passes outlive a disturbance better than few long ones. */
  passes: number;
  /** Builds what both sides need. Whatever it starts or makes belongs to the lab, which ends it. */
  prepare(lab: Lab): Promise<Contest>;
};

export type FigureSpec = {
  name: string;
  unit: string;
  better: "lower" | "higher";
  /** What stands on the other side, in a few words. */
  peer: string;
  /** Our own value, or the ratio to the peer, must be at least this good. */
  target?: { of: "ours" | "ratio"; value: number };
};

/** Values by the name of their figure; a pass measures every figure of the bench whose peer is there. */
export type Measured = Record<string, number>;

export type Contest = {
  ours(): Promise<Measured>;
  theirs(): Promise<Measured>;
  /** Peers that could not be had on this machine, as figures name them, and why not. */
  absent?: Record<string, string>;
  /** Asked after the last pass: what else a reader of the figures wants to know. */
  notes?(): string[];
};
