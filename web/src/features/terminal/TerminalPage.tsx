// A shell of an allocation, over the whole window.

import { getRouteApi, Link } from "@tanstack/react-router";
import { useActing } from "../../session.ts";
import { canRepair } from "../allocations/can-repair.ts";
import { useAllocation } from "../allocations/queries.ts";
import { RepairDialog } from "../allocations/RepairDialog.tsx";
import { backClasses } from "./back-classes.ts";
import { TerminalView } from "./TerminalView.tsx";

const route = getRouteApi("/full-window/allocations/$allocationId/terminal");

export function TerminalPage() {
  const { allocationId } = route.useParams();
  const { session } = route.useSearch();
  const navigate = route.useNavigate();
  const allocation = useAllocation(allocationId).data;
  const { may } = useActing();
  const repairable = allocation && canRepair(allocation, may) ? allocation : undefined;
  return (
    <TerminalView
      key={allocationId}
      at={{ allocationId }}
      session={session}
      onSession={(shell) => void navigate({ search: { session: shell }, replace: true })}
      where={allocation ? `${allocation.username} on ${allocation.node_name}` : ""}
      node={allocation?.node_name}
      over={allocation !== undefined && !["requested", "active"].includes(allocation.status)}
      repair={repairable && ((dialog) => <RepairDialog allocation={repairable} {...dialog} />)}
      back={(look, content) => (
        <Link
          to="/allocations/$allocationId"
          params={{ allocationId }}
          {...(look === "arrow" && {
            "aria-label": "Back to the allocation",
            title: "Back to the allocation; the shell goes on for a while",
          })}
          className={backClasses[look]}
        >
          {content}
        </Link>
      )}
    />
  );
}
