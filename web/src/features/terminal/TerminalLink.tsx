// A link to what a terminal is at, an allocation or a lease; or back to the terminal itself.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

type TerminalLinkProps = {
  terminal: Pick<TerminalSession, "id" | "allocation_id" | "lease_id">;
  /** To the terminal. */
  again?: boolean;
  onClick?: () => void;
  className?: string;
  "aria-label"?: string;
  children: ReactNode;
};

export function TerminalLink({ terminal, again = false, ...rest }: TerminalLinkProps) {
  const { id: session, allocation_id: allocationId, lease_id: leaseId } = terminal;
  if (allocationId !== null)
    return again ? (
      <Link to="/allocations/$allocationId/terminal" params={{ allocationId }} search={{ session }} {...rest} />
    ) : (
      <Link to="/allocations/$allocationId" params={{ allocationId }} {...rest} />
    );
  if (leaseId === null) return rest.children;
  return again ? (
    <Link to="/leases/$leaseId/console" params={{ leaseId }} search={{ session }} {...rest} />
  ) : (
    <Link to="/leases/$leaseId" params={{ leaseId }} {...rest} />
  );
}
