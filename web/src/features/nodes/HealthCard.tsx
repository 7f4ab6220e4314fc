// The result of the last health probe of the host, and its age.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { HostHealth } from "@holdfast/contracts/node/host-health";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { classes } from "../../design/controls/classes.ts";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { duration } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { isCurrent } from "./AsOf.tsx";

export function HealthCard({ node }: { node: NodeDetail }) {
  const { health } = node;
  if (!health) {
    if (node.status !== "active") return null;
    return (
      <Card title="Health">
        <p className="px-5 py-4 text-ink-muted">
          Not probed yet. An online node is probed automatically, the first time soon after it enrolls.
        </p>
      </Card>
    );
  }
  return (
    <Card
      title="Health"
      note={
        <>
          probed <When at={health.observed_at} />
        </>
      }
    >
      <Host host={health.host} current={isCurrent(node)} />
    </Card>
  );
}

/** `current`: the node still reports. */
function Host({ host, current }: { host: HostHealth; current: boolean }) {
  const { kernel, uptime_seconds, load, memory, root_disk, kvm } = host;
  return (
    <Facts className={classes("px-5 py-1", !current && "text-ink-muted")}>
      <Fact name="Kernel">
        <span className="font-mono text-sm">{kernel ?? "unknown"}</span>
        {uptime_seconds !== null && (
          <span className="text-ink-muted">, up {duration(Math.floor(uptime_seconds))}</span>
        )}
      </Fact>
      {load && (
        <Fact name="Load">
          <span className="font-mono text-sm">{load.map((average) => average.toFixed(2)).join(" ")}</span>
        </Fact>
      )}
      {memory && (
        <Fact name="Free memory">
          {bytesInWords(memory.available_bytes)}{" "}
          <span className="text-ink-muted">of {bytesInWords(memory.total_bytes)}</span>
        </Fact>
      )}
      {root_disk && (
        <Fact name="Free on /">
          {bytesInWords(root_disk.free_bytes)}{" "}
          <span className="text-ink-muted">of {bytesInWords(root_disk.total_bytes)}</span>
        </Fact>
      )}
      <Fact name="KVM">
        <Kvm kvm={kvm} current={current} />
      </Fact>
      <Fact name="VFIO">
        {host.vfio_modules.length === 0 && <span className="text-ink-muted">no module, </span>}
        <span className="inline-flex flex-wrap gap-1">
          {host.vfio_modules.map((name) => (
            <Tag key={name} mono>
              {name}
            </Tag>
          ))}
        </span>{" "}
        <span className="text-ink-muted">{host.iommu_groups} IOMMU groups</span>
      </Fact>
      <Fact name="GPUs">
        <Gpus gpus={host.gpus} />
      </Fact>
      <Fact name="Links">
        <Links host={host} />
      </Fact>
    </Facts>
  );
}

function Kvm({ kvm, current }: { kvm: HostHealth["kvm"]; current: boolean }) {
  if (!kvm.device_present) return <StatusMark state="unknown">No device</StatusMark>;
  if (kvm.device_opens) return <StatusMark state={current ? "ok" : "unknown"}>Available</StatusMark>;
  return <StatusMark state="degraded">Present, but the agent has no access</StatusMark>;
}

function Gpus({ gpus }: { gpus: HostHealth["gpus"] }) {
  if (gpus.length === 0) return <span className="text-ink-muted">none found</span>;
  return (
    <ul>
      {gpus.map((gpu) => (
        <li key={gpu.address}>
          {gpu.vendor ?? gpu.vendor_id}{" "}
          <span className="font-mono text-xs text-ink-muted">
            {gpu.address}, {gpu.driver ?? "no driver"}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Lists hardware interfaces one by one; a container host has hundreds of virtual ones, which are counted. */
function Links({ host }: { host: HostHealth }) {
  const real = host.links.filter((link) => link.hardware);
  const others = host.links.length - real.length;
  return (
    <ul>
      {real.map(({ name, state, speed_mbps }) => (
        <li key={name}>
          <span className="font-mono text-sm">{name}</span> {state}
          {speed_mbps !== null && <span className="text-ink-muted">, {speed_mbps / 1000} Gb/s</span>}
        </li>
      ))}
      {host.infiniband.map(({ device, port, state, rate }) => (
        <li key={`${device}/${port}`}>
          <span className="font-mono text-sm">
            {device}/{port}
          </span>{" "}
          {state} <span className="text-ink-muted">{rate}</span>
        </li>
      ))}
      {(others > 0 || real.length === 0) && <li className="text-ink-muted">{others} virtual</li>}
    </ul>
  );
}
