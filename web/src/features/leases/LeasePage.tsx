// One lease and its VM: why it waits, its serial log, its timeline, its consoles, where it was placed and why, and its facts.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { getLease } from "@holdfast/contracts/endpoints/leases";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import { Terminals } from "../terminal/Terminals.tsx";
import { eventInWords } from "./event-words.ts";
import { LeaseReason } from "./LeaseReason.tsx";
import { leaseMark } from "./lease-marks.ts";
import { OpenConsole } from "./OpenConsole.tsx";
import { useExplanation, useLease } from "./queries.ts";
import { SerialLogCard } from "./SerialLogCard.tsx";
import { TerminateLease } from "./TerminateLease.tsx";

const route = getRouteApi("/signed-in/leases/$leaseId");
type Detail = AnswerOf<typeof getLease>;

export function LeasePage() {
  const { leaseId } = route.useParams();
  const lease = useLease(leaseId);
  if (lease.data) return <Shown lease={lease.data} />;
  return (
    <>
      <PageHeader title="Lease" />
      <NotLoaded
        noun="lease"
        query={lease}
        explanation="It does not exist, is older than the retained history, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ lease }: { lease: Detail }) {
  const { state, word } = leaseMark(lease);
  return (
    <>
      <PageHeader
        title={lease.work ?? `${lease.image_id} ${lease.profile}`}
        above={
          <Link to="/leases" className="rounded-sm hover:underline">
            Leases
          </Link>
        }
        actions={
          <>
            <OpenConsole lease={lease} />
            <TerminateLease lease={lease} />
          </>
        }
      >
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1" role="status">
          <StatusMark state={state}>{word}</StatusMark>
          <LiveMark />
        </span>
      </PageHeader>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          {lease.reason && <LeaseReason lease={lease} />}
          {lease.status === "requested" && <Placement lease={lease} />}
          {lease.vm_id && <SerialLogCard key={lease.vm_id} lease={lease} />}
          <Timeline lease={lease} />
          {lease.status !== "requested" && <Placement lease={lease} />}
        </div>
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          <Details lease={lease} />
          {lease.vm_id && (
            <Terminals of={{ lease_id: lease.id }} title="Consoles" empty="No console was opened yet." />
          )}
        </div>
      </div>
    </>
  );
}

function Placement({ lease }: { lease: Detail }) {
  const { data } = useExplanation(lease);
  if (!data || (data.not_chosen.length === 0 && data.chosen === null && lease.status !== "requested")) return null;
  return (
    <Card title={lease.status === "requested" ? "Why it waits" : "Why this host"}>
      <p className="px-5 py-4">
        <Prose text={data.chosen?.message ?? data.summary} />
      </p>
      <ul aria-label="Hosts that were not chosen" className="border-t border-line empty:hidden">
        {data.not_chosen.map((host) => (
          <li key={host.host_id} className="border-b border-line px-5 py-3 last:border-b-0">
            <span className="mr-4 font-medium">{host.name}</span>
            <span className="text-ink-muted">
              <Prose text={host.message} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Timeline({ lease }: { lease: Detail }) {
  return (
    <Card title="Timeline">
      <ol aria-label="Timeline">
        {lease.timeline.map((entry) => (
          <li
            key={`${entry.at} ${entry.event}`}
            className="flex gap-4 border-b border-line px-5 py-3 last:border-b-0"
          >
            <span className="w-40 shrink-0 text-sm text-ink-muted">
              <When at={entry.at} exact />
            </span>
            <span>
              <span className="font-medium">
                {entry.to === null ? "Reported late, no change" : leaseStateTitles[entry.to].title}
              </span>
              <span className="block text-sm text-ink-muted">{entry.message ?? eventInWords(entry.event)}</span>
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Details({ lease }: { lease: Detail }) {
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="Host">
          {lease.host_id ? (
            <Link
              to="/nodes/$nodeId"
              params={{ nodeId: lease.host_id }}
              className="rounded-sm text-kelp hover:underline"
            >
              {lease.host_name}
            </Link>
          ) : (
            <span className="text-ink-muted">none yet</span>
          )}
        </Fact>
        <Fact name="Image">{lease.image_id}</Fact>
        <Fact name="Size">
          {lease.profile}: {lease.vcpus} vCPU, {bytesInWords(lease.memory_mib * 1024 * 1024)} memory,{" "}
          {lease.disk_gib} GiB disk
        </Fact>
        {lease.label && <Fact name="Label">{lease.label}</Fact>}
        <Fact name="Requested by">{lease.created_by}</Fact>
        <Fact name="Requested">
          <When at={lease.created_at} exact />
        </Fact>
        {lease.status === "requested" && (
          <Fact name="Waits until">
            <When at={lease.wait_until} exact />
          </Fact>
        )}
        {lease.expires_at && !lease.finished_at && (
          <Fact name="Ends at the latest">
            <When at={lease.expires_at} exact />
          </Fact>
        )}
        {lease.vm_id && (
          <Fact name="VM id">
            <CopyableId id={lease.vm_id} label="Copy VM id" />
          </Fact>
        )}
        <Fact name="Lease id">
          <CopyableId id={lease.id} label="Copy lease id" />
        </Fact>
        <Fact name="Correlation id">
          <CopyableId id={lease.correlation_id} label="Copy correlation id" />
        </Fact>
      </Facts>
    </Card>
  );
}
