// Allocations as rows. The reason why one waits or has failed is shown below it, with the next step.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { classes } from "../../design/controls/classes.ts";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { OpenTerminal } from "../terminal/OpenTerminal.tsx";
import { markOfAllocation } from "./allocation-marks.ts";
import { OwnerName } from "./OwnerName.tsx";
import { ReleaseDialog } from "./ReleaseDialog.tsx";

type AllocationTableProps = {
  allocations: Allocation[];
  /** Hidden where all allocations are on one node. */
  showsNode?: boolean;
  className?: string;
};

export function AllocationTable({ allocations, showsNode = true, className }: AllocationTableProps) {
  const { may } = useActing();
  const [releasing, setReleasing] = useState<Allocation | null>(null);
  const writable = may("allocations:write");
  const columns = [
    "User",
    "Status",
    ...(showsNode ? [{ wide: "Node" }] : []),
    { wide: "Created" },
    { wide: "Owner" },
    <ActionsHeader key="actions" />,
  ];
  return (
    <>
      <Table label="Allocations" columns={columns} className={className}>
        {allocations.map((allocation) => (
          <Rows
            key={allocation.id}
            allocation={allocation}
            showsNode={showsNode}
            width={columns.length}
            onRelease={writable && allocation.access === "manage" ? () => setReleasing(allocation) : undefined}
          />
        ))}
      </Table>
      {releasing && <ReleaseDialog allocation={releasing} onClose={() => setReleasing(null)} />}
    </>
  );
}

type RowsProps = { allocation: Allocation; showsNode: boolean; width: number; onRelease?: () => void };

function Rows({ allocation, showsNode, width, onRelease }: RowsProps) {
  const { state, word, meaning } = markOfAllocation(allocation);
  const over = allocation.status === "released" || allocation.status === "releasing";
  const join = allocation.reason && "border-b-0";
  return (
    <>
      <tr className={allocation.status === "released" ? "text-ink-muted" : undefined}>
        <Cell className={classes(join)}>
          <Link
            to="/allocations/$allocationId"
            params={{ allocationId: allocation.id }}
            className="rounded-sm font-mono text-sm font-medium [overflow-wrap:anywhere] hover:underline"
          >
            {allocation.username}
          </Link>
          {allocation.own_account && (
            <span className="block text-xs text-ink-muted" title="Shared, and never removed">
              the agent's own account
            </span>
          )}
          {allocation.home && !allocation.own_account && (
            <span className="block font-mono text-xs text-ink-muted">{allocation.home}</span>
          )}
          {showsNode && (
            <span className="block text-sm md:hidden">
              on <ToNode allocation={allocation} />
            </span>
          )}
        </Cell>
        <Cell className={classes(join)}>
          <span role="status" title={meaning}>
            <StatusMark state={state}>{word}</StatusMark>
          </span>
          {allocation.task_id && (
            <Link
              to="/tasks/$taskId"
              params={{ taskId: allocation.task_id }}
              className="block rounded-sm text-xs text-ink-muted hover:underline"
            >
              last task
            </Link>
          )}
        </Cell>
        {showsNode && (
          <Cell className={classes(wideOnly, join)}>
            <ToNode allocation={allocation} />
          </Cell>
        )}
        <Cell className={classes(wideOnly, "text-ink-muted", join)}>
          <When at={allocation.created_at} />
        </Cell>
        <Cell className={classes(wideOnly, "max-w-52 truncate text-ink-muted", join)}>
          <OwnerName owner={allocation.owner} />
        </Cell>
        <Cell className={classes("w-0 px-2 py-0", join)}>
          <span className="flex items-center justify-end gap-1 max-sm:flex-col max-sm:items-end max-sm:py-1.5">
            <OpenTerminal allocation={allocation} />
            {onRelease && !over && (
              <Button look="quiet" onClick={onRelease} aria-label={`Release ${allocation.username}`}>
                Release
              </Button>
            )}
          </span>
        </Cell>
      </tr>
      {allocation.reason && (
        <tr>
          <Cell colSpan={width} className="pt-0 pb-3">
            <Notice
              state={allocation.status === "failed" ? "failed" : "degraded"}
              title={allocation.reason.message}
            >
              <Prose text={allocation.reason.next_step} />
            </Notice>
          </Cell>
        </tr>
      )}
    </>
  );
}

function ToNode({ allocation }: { allocation: Allocation }) {
  return (
    <Link
      to="/nodes/$nodeId"
      params={{ nodeId: allocation.node_id }}
      className="rounded-sm text-kelp [overflow-wrap:anywhere] hover:underline"
    >
      {allocation.node_name}
    </Link>
  );
}
