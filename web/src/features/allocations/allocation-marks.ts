// An allocation's status as shape and word.

import type { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import type { State } from "../../design/StatusMark.tsx";

export const allocationMarks: Record<AllocationStatus, { state: State; word: string }> = {
  requested: { state: "moving", word: "Requested" },
  active: { state: "ok", word: "Active" },
  releasing: { state: "moving", word: "Releasing" },
  released: { state: "ended", word: "Released" },
  failed: { state: "failed", word: "Failed" },
};
