// One node: its state, identity, tasks, allocations and terminals.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useActing } from "../../session.ts";
import { NodeAllocations } from "../allocations/NodeAllocations.tsx";
import { EvidenceButton } from "../evidence/EvidenceButton.tsx";
import { PreflightCard } from "../preflights/PreflightCard.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import { NodeTasks } from "../tasks/NodeTasks.tsx";
import { Terminals } from "../terminal/Terminals.tsx";
import { Causes } from "./Causes.tsx";
import { CertificateCard } from "./CertificateCard.tsx";
import { Checklist } from "./Checklist.tsx";
import { Diagnostics } from "./Diagnostics.tsx";
import { EvidenceCard } from "./EvidenceCard.tsx";
import { HealthCard } from "./HealthCard.tsx";
import { HeartbeatCard } from "./HeartbeatCard.tsx";
import { HostCard } from "./HostCard.tsx";
import { LayerMarks } from "./LayerMarks.tsx";
import { NodeActions } from "./NodeActions.tsx";
import { Connection } from "./NodeTable.tsx";
import { statusMarks } from "./node-marks.ts";
import { useNode } from "./queries.ts";

const route = getRouteApi("/signed-in/nodes/$nodeId");

export function NodePage() {
  const { nodeId } = route.useParams();
  const node = useNode(nodeId);
  if (node.data) return <Shown node={node.data} />;
  return (
    <>
      <PageHeader title="Node" above={<ToNodes />} />
      <NotLoaded
        noun="node"
        query={node}
        explanation="It does not exist, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

export function ToNodes() {
  return (
    <Link to="/nodes" className="rounded-sm hover:underline">
      Nodes
    </Link>
  );
}

function Shown({ node }: { node: NodeDetail }) {
  const { may, org } = useActing();
  const diagnoses = may("nodes:diagnose");
  const readsOnly = !may("nodes:write") && !may("tasks:write");
  return (
    <>
      <PageHeader
        title={node.name}
        above={<ToNodes />}
        actions={
          <>
            <EvidenceButton subjectId={node.id} />
            {may("nodes:write") && <NodeActions node={node} />}
          </>
        }
      >
        <CurrentState node={node} />
      </PageHeader>
      <div className="grid gap-6">
        {diagnoses && <Causes node={node} />}
        {readsOnly && (
          <p className="text-sm text-ink-muted">
            Your role in {org.name} is {org.role}: you can view nodes and tasks. Admins and owners can change nodes
            and run tasks.
          </p>
        )}
        <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
            <NodeTasks node={node} />
            <NodeAllocations node={node} />
            <Terminals of={{ node_id: node.id }} />
            {diagnoses && <Diagnostics node={node} />}
          </div>
          <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
            {diagnoses && <Checklist node={node} />}
            {diagnoses && node.status !== "retired" && <PreflightCard of={{ node_id: node.id }} />}
            {diagnoses && <HeartbeatCard node={node} />}
            {diagnoses && <EvidenceCard node={node} />}
            {diagnoses && <CertificateCard node={node} />}
            <HealthCard node={node} />
            <HostCard node={node} />
          </div>
        </div>
      </div>
    </>
  );
}

function CurrentState({ node }: { node: NodeDetail }) {
  const { state, word, meaning } = statusMarks[node.status];
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-5 gap-y-1">
        <span title={meaning}>
          <StatusMark state={state}>{word}</StatusMark>
        </span>
        {node.status !== "retired" && <Connection node={node} />}
        <LiveMark />
      </div>
      {node.status !== "retired" && node.layers && <LayerMarks layers={node.layers} />}
      {node.attention.length === 0 && (node.status_reason || node.status !== "active") && (
        <p className="mt-1">
          {meaning}
          {node.status_reason && <span className="text-ink"> Reason: {node.status_reason}</span>}
        </p>
      )}
    </>
  );
}
