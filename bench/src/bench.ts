// What a bench is: figures it measures on both sides, and a contest that measures them once per
// pass. Everything else (interleaving, medians, verdicts, printing, cleaning up) is not its business.

import type { Lab } from "./lab.ts";

export type Bench = {
  name: string;
  summary: string;
  figures: FigureSpec[];
  /** Unless --passes says otherwise. Many short passes outlive a disturbance better than few long ones. */
  passes: number;
  /** The options that it understands beside those of every bench. */
  takes?: readonly (keyof BenchOptions)[];
  /** Builds what both sides need. Whatever it starts or makes belongs to the lab, which ends it. */
  prepare(lab: Lab, options?: BenchOptions): Promise<Contest>;
};

export type BenchOptions = { agents?: number; minutes?: number; vms?: number };

export type FigureSpec = {
  name: string;
  unit: string;
  better: "lower" | "higher";
  /** What stands on the other side, in a few words. */
  peer: string;
  /** The least that the work could take on this machine, in a few words; the peer's name where the peer is the floor. */
  floor?: string;
  /** Our own value, or its ratio to the peer or to the floor, must be at least this good. */
  target?: { of: "ours" | "ratio" | "over_floor"; value: number };
};

/** Values by the name of their figure; a pass measures every figure of the bench whose peer is there. */
export type Measured = Record<string, number>;

export type Contest = {
  ours(): Promise<Measured>;
  theirs(): Promise<Measured>;
  /** The figures that have a floor other than their peer. */
  floor?(): Promise<Measured>;
  /** Peers that could not be had on this machine, as figures name them, and why not. */
  absent?: Record<string, string>;
  /** Asked after the last pass: what else a reader of the figures wants to know. */
  notes?(): string[];
};
