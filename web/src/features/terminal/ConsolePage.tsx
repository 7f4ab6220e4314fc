// The serial console of a VM, over the whole window.

import { getRouteApi, Link } from "@tanstack/react-router";
import { hasEnded } from "../leases/lease-marks.ts";
import { useLease } from "../leases/queries.ts";
import { backClasses } from "./back-classes.ts";
import { TerminalView } from "./TerminalView.tsx";

const route = getRouteApi("/full-window/leases/$leaseId/console");

export function ConsolePage() {
  const { leaseId } = route.useParams();
  const { session } = route.useSearch();
  const navigate = route.useNavigate();
  const lease = useLease(leaseId).data;
  return (
    <TerminalView
      key={leaseId}
      at={{ leaseId }}
      session={session}
      onSession={(shell) => void navigate({ search: { session: shell }, replace: true })}
      where={lease ? `Console of ${lease.image_id} on ${lease.host_name ?? "no host"}` : ""}
      node={lease?.host_name ?? undefined}
      over={lease !== undefined && hasEnded(lease)}
      back={(look, content) => (
        <Link
          to="/leases/$leaseId"
          params={{ leaseId }}
          {...(look === "arrow" && {
            "aria-label": "Back to the lease",
            title: "Back to the lease; the VM goes on",
          })}
          className={backClasses[look]}
        >
          {content}
        </Link>
      )}
    />
  );
}
