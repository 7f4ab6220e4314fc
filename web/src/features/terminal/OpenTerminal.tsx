// The way into a terminal, wherever an allocation is shown.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { Link } from "@tanstack/react-router";
import { type ButtonLook, buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { useActing } from "../../session.ts";

type OpenTerminalProps = { allocation: Allocation; look?: ButtonLook; className?: string };

export function OpenTerminal({ allocation, look = "secondary", className }: OpenTerminalProps) {
  const { may } = useActing();
  if (allocation.status !== "active" || allocation.access === "view" || !may("terminals:use")) return null;
  return (
    <Link
      to="/allocations/$allocationId/terminal"
      params={{ allocationId: allocation.id }}
      aria-label={`Open terminal of ${allocation.username} on ${allocation.node_name}`}
      className={buttonClasses(look, className)}
    >
      <Icon name="terminal" />
      Open terminal
    </Link>
  );
}
