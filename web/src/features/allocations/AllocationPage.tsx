// One allocation: its state, its details and its terminals.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { removalInWords } from "@holdfast/contracts/words/allocations";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { EvidenceButton } from "../evidence/EvidenceButton.tsx";
import { PreflightCard } from "../preflights/PreflightCard.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import { OpenTerminal } from "../terminal/OpenTerminal.tsx";
import { Terminals } from "../terminal/Terminals.tsx";
import { markOfAllocation } from "./allocation-marks.ts";
import { canRepair } from "./can-repair.ts";
import { NotificationsCard } from "./NotificationsCard.tsx";
import { OwnerName } from "./OwnerName.tsx";
import { useAllocation } from "./queries.ts";
import { ReleaseDialog } from "./ReleaseDialog.tsx";
import { RepairDialog } from "./RepairDialog.tsx";
import { SharingCard } from "./SharingCard.tsx";
import { TransferDialog } from "./TransferDialog.tsx";
import { UserStateNotice } from "./UserStateNotice.tsx";

const route = getRouteApi("/signed-in/allocations/$allocationId");

export function AllocationPage() {
  const { allocationId } = route.useParams();
  const allocation = useAllocation(allocationId);
  if (allocation.data) return <Shown allocation={allocation.data} />;
  return (
    <>
      <PageHeader title="Allocation" above={<ToAllocations />} />
      <NotLoaded
        noun="allocation"
        query={allocation}
        explanation="It does not exist, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function ToAllocations() {
  return (
    <Link to="/allocations" className="rounded-sm hover:underline">
      Allocations
    </Link>
  );
}

function Shown({ allocation }: { allocation: Allocation }) {
  const { may } = useActing();
  const [open, setOpen] = useState<"release" | "repair" | "transfer" | null>(null);
  const close = () => setOpen(null);
  const manages = allocation.access === "manage" && may("allocations:write");
  const { state, word } = markOfAllocation(allocation);
  const over = allocation.status === "released" || allocation.status === "releasing";
  return (
    <>
      <PageHeader
        title={`${allocation.username} on ${allocation.node_name}`}
        above={<ToAllocations />}
        actions={
          <>
            <EvidenceButton subjectId={allocation.id} />
            {may("allocations:admin") && !over && <Button onClick={() => setOpen("transfer")}>Transfer</Button>}
            {canRepair(allocation, may) && <Button onClick={() => setOpen("repair")}>Repair</Button>}
            {manages && !over && <Button onClick={() => setOpen("release")}>Release</Button>}
            <OpenTerminal allocation={allocation} look="primary" />
          </>
        }
      >
        <span className="flex flex-wrap items-baseline gap-x-4" role="status">
          <StatusMark state={state}>{word}</StatusMark>
          <LiveMark />
        </span>
      </PageHeader>
      <div className="grid gap-6">
        <UserStateNotice allocation={allocation} />
        {allocation.removal && !allocation.reason && <Notice state="unknown" title={removalInWords(allocation)} />}
        {allocation.reason && (
          <Notice state={allocation.status === "failed" ? "failed" : "degraded"} title={allocation.reason.message}>
            <Prose text={allocation.reason.next_step} />
          </Notice>
        )}
        <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Terminals of={{ allocation_id: allocation.id }} />
          <div className="grid gap-6">
            <Details allocation={allocation} />
            {may("nodes:diagnose") && !over && (
              <PreflightCard of={{ node_id: allocation.node_id, allocation_id: allocation.id }} />
            )}
            <NotificationsCard allocation={allocation} />
            {manages && <SharingCard allocation={allocation} />}
          </div>
        </div>
      </div>
      {open === "release" && <ReleaseDialog allocation={allocation} onClose={close} />}
      {open === "repair" && <RepairDialog allocation={allocation} onClose={close} />}
      {open === "transfer" && <TransferDialog allocation={allocation} onClose={close} />}
    </>
  );
}

function Details({ allocation }: { allocation: Allocation }) {
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="Owner">
          <OwnerName owner={allocation.owner} />
        </Fact>
        {allocation.access !== "manage" && (
          <Fact name="Your access">
            {allocation.access === "use" ? "Use: open terminals" : "View only"}
            {allocation.access_until && (
              <span className="block text-ink-muted">
                expires <When at={allocation.access_until} />
              </span>
            )}
          </Fact>
        )}
        <Fact name="Node">
          <Link
            to="/nodes/$nodeId"
            params={{ nodeId: allocation.node_id }}
            className="rounded-sm text-kelp hover:underline"
          >
            {allocation.node_name}
          </Link>
        </Fact>
        <Fact name="User">
          <span className="font-mono text-sm">{allocation.username}</span>
          {allocation.own_account && (
            <span className="block text-ink-muted">the agent's own account: shared, and never removed</span>
          )}
        </Fact>
        {allocation.home && (
          <Fact name="Home">
            <span className="font-mono text-sm">{allocation.home}</span>
          </Fact>
        )}
        <Fact name="Requested">
          <When at={allocation.created_at} exact />
          <span className="block text-ink-muted">by {allocation.created_by}</span>
        </Fact>
        {allocation.active_at && (
          <Fact name="Ready since">
            <When at={allocation.active_at} exact />
          </Fact>
        )}
        {allocation.released_at && (
          <Fact name="Released">
            <When at={allocation.released_at} exact />
          </Fact>
        )}
        {allocation.task_id && (
          <Fact name="Last task">
            <Link
              to="/tasks/$taskId"
              params={{ taskId: allocation.task_id }}
              className="rounded-sm text-kelp hover:underline"
            >
              Show the task
            </Link>
          </Fact>
        )}
        <Fact name="Allocation id">
          <CopyableId id={allocation.id} label="Copy allocation id" />
        </Fact>
      </Facts>
    </Card>
  );
}
