// An allocation's status as shape and title. One that is ready but affected by its node is never shown as well.

import type { Allocation, AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import { allocationStatusTitles, userStateTitles } from "@holdfast/contracts/words/state-titles";
import { type Mark, marksOf } from "../../design/values/marks.ts";

export const allocationMarks = marksOf<AllocationStatus>(allocationStatusTitles, {
  requested: "moving",
  active: "ok",
  releasing: "moving",
  released: "ended",
  failed: "failed",
});

export const userStateMarks = marksOf<UserState>(userStateTitles, {
  normal: "ok",
  temporary: "unknown",
  recovering: "moving",
  operator_action_required: "degraded",
  security_action_required: "failed",
});

export function markOfAllocation({ status, user_state }: Pick<Allocation, "status" | "user_state">): Mark {
  const affected = status === "active" && user_state !== null && user_state.state !== "normal";
  return affected ? userStateMarks[user_state.state] : allocationMarks[status];
}
