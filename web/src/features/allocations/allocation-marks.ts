// An allocation's status as shape and title.

import type { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import { allocationStatusTitles } from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";

export const allocationMarks = marksOf<AllocationStatus>(allocationStatusTitles, {
  requested: "moving",
  active: "ok",
  releasing: "moving",
  released: "ended",
  failed: "failed",
});
