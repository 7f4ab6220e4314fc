// A lease's state as shape and title.

import { endedLeaseStates, type Lease, type LeaseState } from "@holdfast/contracts/endpoints/leases";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { type Mark, marksOf } from "../../design/values/marks.ts";

const marks = marksOf<LeaseState>(leaseStateTitles, {
  requested: "unknown",
  provisioning: "moving",
  booting: "moving",
  connected: "ok",
  running: "ok",
  terminating: "moving",
  terminated: "ended",
  failed: "failed",
  orphaned: "degraded",
});

export const leaseMark = ({ status }: Pick<Lease, "status">): Mark => marks[status];

export const hasEnded = ({ status }: Pick<Lease, "status">): boolean => endedLeaseStates.has(status);
