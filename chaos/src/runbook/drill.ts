// A drill: one fault of the runbook, what everybody concerned must get, and what is captured before and after the repair.

import type { PreflightReport } from "@holdfast/contracts/preflight/report";
import type { Fault } from "../faults/fault.ts";
import type { Lab, LabOptions } from "../lab/lab.ts";

/** `M…` of the matrix, `L…` of the lists; `variant` where the document says "or". */
export type RowOfDrill = { row: string; variant?: string };

export type Drill = {
  name: string;
  title: string;
  rows: readonly RowOfDrill[];
  /** Drills of one lab follow each other in it. */
  labName: string;
  lab: LabOptions;
  /** What the user does, and is refused: opens a terminal, or runs a task on the node. */
  user: "terminal" | "task";
  fault(lab: Lab): Fault & { prepare?(): Promise<void> };
  /** Until the fault can be noticed at all. */
  takesEffect?(scene: DrillScene): Promise<void>;
  /** Without a login to the host, the server's evidence is all that there is. */
  withoutSsh?: boolean;
  /** In the lab, before the second preflight. */
  afterRepair?(scene: DrillScene): Promise<void>;
  expect: ExpectedOfDrill;
  /** By the row and the name in the document's cell, such as `M1: journald service state`. */
  before?: Record<string, Cell>;
  after?: Record<string, Cell>;
};

export type ExpectedOfDrill = {
  /** `served`: nothing has failed yet, and the request succeeds. */
  user: { code: string; hop: string | null; next_step: RegExp } | "served";
  /** `id`: it shows a correlation id; without, the server found it by itself. */
  page: { hop: string; signal: string; id?: false };
  preflight: { failed_hop: string; symptom_hop: string | null; signal: string; owner: string };
};

/** What is captured, and what it must be. */
export type Cell = { take(scene: DrillScene): Promise<string> | string; is: RegExp };

export type DrillScene = {
  lab: Lab;
  /** When the fault was injected. */
  brokenAt: number;
  user: Refused;
  before: PreflightReport;
  after: PreflightReport;
};

export type Refused = {
  exit_code: number;
  code: string;
  hop: string | null;
  message: string;
  next_step: string;
  correlation_id: string | null;
  audit_correlation_id: string | null;
  seconds: number;
};

export type PreflightSeen = {
  exit_code: number;
  result: string;
  failed_hop: string | null;
  symptom_hop: string | null;
  signal: string | null;
  owner: string | null;
  node_id: string;
  correlation_id: string;
  audit_correlation_id: string | null;
};

/** Everything in it is judged. */
export type DrillEvidence = {
  user: Omit<Refused, "message">;
  page: {
    hop: string | null;
    signal: string | null;
    correlation_id: string | null;
    audit_correlation_id: string | null;
  };
  preflight: { before: PreflightSeen; after: PreflightSeen };
  cells: Record<string, string>;
  retry: {
    exit_code: number;
    correlation_id: string | null;
    audit_correlation_id: string | null;
    seconds: number;
  };
  /** Of the lab, which the reports must name. */
  node_id: string;
};
