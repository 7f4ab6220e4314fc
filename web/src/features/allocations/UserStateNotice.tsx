// How the node behind an allocation affects it, in the words for tenants. Nothing while it is normal.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { Notice } from "../../design/feedback/Notice.tsx";
import { When } from "../../design/values/When.tsx";
import { userStateMarks } from "./allocation-marks.ts";

export function UserStateNotice({ allocation: { user_state } }: { allocation: Allocation }) {
  if (!user_state || user_state.state === "normal") return null;
  const { state } = userStateMarks[user_state.state];
  return (
    <Notice state={state === "degraded" || state === "failed" ? state : "unknown"} title={user_state.title}>
      <p>{user_state.message}</p>
      <p className="mt-1 text-sm text-ink-muted">
        Since <When at={user_state.since} />
      </p>
    </Notice>
  );
}
