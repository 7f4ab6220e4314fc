// The way to the serial console of a VM, wherever its lease is shown.

import type { Lease } from "@holdfast/contracts/endpoints/leases";
import { Link } from "@tanstack/react-router";
import { buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { useActing } from "../../session.ts";

export function OpenConsole({ lease }: { lease: Lease }) {
  const { may } = useActing();
  const hasConsole = ["booting", "connected", "running"].includes(lease.status);
  if (!hasConsole || !may("leases:write") || !may("terminals:use")) return null;
  return (
    <Link to="/leases/$leaseId/console" params={{ leaseId: lease.id }} className={buttonClasses("secondary")}>
      <Icon name="terminal" />
      Open console
    </Link>
  );
}
