// A row of the failure matrix: how its fault is made, and what came of it.

import type { LabOptions } from "../lab/lab.ts";
import type { Answer } from "./answer-key.ts";
import type { Installation } from "./installation.ts";
import type { Scene } from "./scene.ts";

type AtLab = {
  at: "lab";
  lab?: LabOptions;
  /** Nothing is wrong any more, and nothing is remembered, as soon as it is repaired. */
  returns?: boolean;
  run(scene: Scene): Promise<void>;
};
/** One machine with a user on it, whose terminal somebody opens. */
type AtInstallation = {
  at: "installation";
  run(place: Installation, injected: () => void): Promise<void>;
  /** Beyond leading everything as before. */
  repair?(place: Installation): Promise<unknown>;
};
/** Only for rows that the key marks so: there is nothing yet that it could happen to. One step after the other. */
type Injected = { at: "database"; evidence: readonly (readonly InjectedEvidence[])[] };

/** `nextAction`: where the fault meets the condition under which the key gives another one. */
export type Row = { row: string; how: string; nextAction?: string } & (AtLab | AtInstallation | Injected);
export type RowAt<Place extends Row["at"]> = Extract<Row, { at: Place }>;

export type InjectedEvidence = { kind: string; value: string; observer: string };

export type RowResult = Answer & {
  row: string;
  ok: boolean;
  /** From the injection until the answer was given; null: it was not. */
  seconds: number | null;
  budget: number;
  how: string;
  problems: string[];
};
