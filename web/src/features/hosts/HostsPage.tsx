// VM hosts: platform, accelerator, capacity as bars, images, and whether each takes leases.

import { listHosts, updateHost, type VmHost } from "@holdfast/contracts/endpoints/hosts";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { ImageAdvice, Slow, Strays } from "./HostNotes.tsx";

export function HostsPage() {
  const { org, call } = useActing();
  const { data, error, refetch } = useQuery({
    // A host changes with every heartbeat and every lease.
    queryKey: ["org", org.id, "leases", "hosts"],
    queryFn: ({ signal }) => call(listHosts, { signal }),
    refetchInterval: 5000,
  });
  return (
    <>
      <PageHeader
        title="Hosts"
        actions={
          <Link to="/leases" className={buttonClasses("secondary")}>
            Leases
          </Link>
        }
      >
        Nodes that run VMs for {org.name}. Each VM belongs to one lease.
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="hosts" />}
      {data?.items.length === 0 && (
        <EmptyState icon={<Icon name="hosts" />} title="No VM hosts yet">
          <p>
            <Prose text="Install QEMU on a node and set `HOLDFAST_VM_HOST=on` for its agent. The node then appears here by itself." />
          </p>
        </EmptyState>
      )}
      <ul aria-label="Hosts" className="grid grid-cols-[minmax(0,1fr)] gap-6 2xl:grid-cols-2">
        {data?.items.map((host) => (
          <li key={host.id}>
            <HostCard host={host} />
          </li>
        ))}
      </ul>
    </>
  );
}

function HostCard({ host }: { host: VmHost }) {
  const { free, allocatable, physical } = host.capacity;
  const mib = (value: number) => bytesInWords(value * 1024 ** 2);
  return (
    <Card title={host.name} note={<EnableHost host={host} />}>
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1 px-5 pt-4">
        <StatusMark state={host.schedulable ? "ok" : host.enabled ? "degraded" : "ended"}>
          {host.schedulable ? "Takes leases" : host.enabled ? "Takes no leases now" : "Disabled"}
        </StatusMark>
        <span className="font-mono text-sm">{host.platform}</span>
        <Tag>{host.accelerator ?? "no accelerator yet"}</Tag>
        <Link
          to="/nodes/$nodeId"
          params={{ nodeId: host.id }}
          className="ml-auto rounded-sm text-sm text-kelp hover:underline"
        >
          Node<span className="sr-only"> {host.name}</span>
        </Link>
      </div>
      {host.accelerator === "tcg" && <Slow host={host} />}
      {host.not_schedulable && (
        <p className="px-5 pt-2 text-sm text-ink-muted">
          <Prose text={host.not_schedulable} />
        </p>
      )}
      <div className="grid gap-3 px-5 py-4">
        <CapacityBar
          name="CPU"
          free={free.vcpus}
          all={allocatable.vcpus}
          physical={physical.vcpus}
          show={String}
        />
        <CapacityBar
          name="Memory"
          free={free.memory_mib}
          all={allocatable.memory_mib}
          physical={physical.memory_mib}
          show={mib}
        />
        <CapacityBar
          name="Disk"
          free={free.disk_mib}
          all={allocatable.disk_mib}
          physical={physical.disk_mib}
          show={mib}
        />
      </div>
      <Facts className="border-t border-line px-5 py-1">
        <Fact name="VMs">
          <Link to="/leases" search={{ host_id: host.id }} className="rounded-sm text-kelp hover:underline">
            {host.leases} of at most {host.most_vms}
          </Link>
        </Fact>
        <Fact name="Images">
          <span className="flex flex-wrap gap-1">
            {host.images.length === 0 && <span className="text-ink-muted">None</span>}
            {host.images.map((image) => (
              <Tag key={image.id}>
                {image.id}
                {image.problem ? " (unusable)" : image.in_catalogue ? "" : " (not in the catalogue)"}
              </Tag>
            ))}
          </span>
          <ImageAdvice host={host} />
        </Fact>
        <Fact name="QEMU">{host.qemu_version ?? <span className="text-ink-muted">not reported</span>}</Fact>
        {host.strays.length > 0 && (
          <Fact name="Without a lease">
            <Strays host={host} />
          </Fact>
        )}
      </Facts>
    </Card>
  );
}

type CapacityBarProps = {
  name: string;
  free: number;
  all: number;
  physical: number;
  show: (value: number) => string;
};

function CapacityBar({ name, free, all, physical, show }: CapacityBarProps) {
  const used = Math.max(0, all - free);
  const percent = all === 0 ? 0 : Math.min(100, Math.round((used / all) * 100));
  return (
    <div>
      <div className="flex justify-between text-sm">
        <span className="font-medium">{name}</span>
        <span className="text-ink-muted tabular-nums">
          {show(free)} free of {show(all)}
          {physical > all && `, ${show(physical)} physical`}
        </span>
      </div>
      <div className="mt-1 h-2 overflow-hidden rounded-full bg-line" aria-hidden="true">
        <div className="h-full bg-kelp" style={{ width: `${percent}%` }} />
      </div>
    </div>
  );
}

function EnableHost({ host }: { host: VmHost }) {
  const { may } = useActing();
  const change = useChange({
    send: (call) => call(updateHost, { params: { host_id: host.id }, body: { enabled: !host.enabled } }),
  });
  if (!may("nodes:write")) return null;
  return (
    <>
      <Button onClick={() => change.mutate("")} busy={change.isPending}>
        {host.enabled ? "Disable" : "Enable"}
        <span className="sr-only"> {host.name}</span>
      </Button>
      {change.error && <ErrorNotice key={change.submittedAt} error={change.error} />}
    </>
  );
}
