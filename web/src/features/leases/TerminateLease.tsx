// Terminates a lease: its VM is stopped, and its host confirms when nothing of it is left.

import { type Lease, terminateLease } from "@holdfast/contracts/endpoints/leases";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { hasEnded } from "./lease-marks.ts";

export function TerminateLease({ lease }: { lease: Lease }) {
  const { may } = useActing();
  const terminate = useChange({ send: (call) => call(terminateLease, { params: { lease_id: lease.id } }) });
  if (hasEnded(lease) || !may("leases:write")) return null;
  return (
    <>
      <Button
        onClick={() => terminate.mutate("")}
        busy={terminate.isPending}
        disabled={lease.status === "terminating"}
      >
        {lease.status === "terminating" ? "Terminating…" : "Terminate"}
        <span className="sr-only"> lease {lease.id}</span>
      </Button>
      {terminate.error && <ErrorNotice key={terminate.submittedAt} error={terminate.error} />}
    </>
  );
}
