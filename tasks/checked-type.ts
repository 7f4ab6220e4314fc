// A task type as agents have it: checks stand in place of schemas (ADR 35).

import type { Check } from "@holdfast/kit/checks";
import type { AnyTaskType } from "./type.ts";

export type CheckedTaskType = Omit<AnyTaskType, "params" | "progress" | "result" | "orderKey"> & {
  params: Check;
  progress: Check;
  result: Check;
};
