// The host, as its agent detected it.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { classes } from "../../design/controls/classes.ts";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { AsOf, isCurrent } from "./AsOf.tsx";

export function HostCard({ node }: { node: NodeDetail }) {
  const { facts } = node;
  if (!facts) return null;
  return (
    <Card
      title="Machine"
      note={
        <>
          <span className="font-mono">{facts.hostname}</span> <AsOf node={node} />
        </>
      }
    >
      <Facts className={classes("px-5 py-1", !isCurrent(node) && "text-ink-muted")}>
        <Fact name="System">
          {facts.os.flavour} {facts.os.version}
        </Fact>
        <Fact name="Kernel">
          <span className="font-mono text-sm">
            {facts.os.family} {facts.os.kernel} {facts.arch}
          </span>
        </Fact>
        <Fact name="CPUs">{facts.cpus}</Fact>
        <Fact name="Memory">
          <Usage free={facts.memory_free_bytes} total={facts.memory_bytes} />
        </Fact>
        <Fact name="Disk">
          <Usage free={facts.disk.free_bytes} total={facts.disk.total_bytes} />
        </Fact>
        <Fact name="Accelerators">
          <Accelerators accelerators={facts.accelerators} />
        </Fact>
        <Fact name="Account">
          <span className="font-mono text-sm">{facts.account}</span>
        </Fact>
        <Fact name="Capabilities">
          {facts.capabilities.length === 0 && <span className="text-ink-muted">none</span>}
          <span className="flex flex-wrap gap-1">
            {facts.capabilities.map((capability) => (
              <Tag key={capability} mono>
                {capability}
              </Tag>
            ))}
          </span>
        </Fact>
        {facts.advertised_address && <Fact name="Advertised address">{facts.advertised_address}</Fact>}
        {node.address && <Fact name="Address">{node.address}</Fact>}
        {node.provider && <Fact name="Provider">{node.provider}</Fact>}
        {node.network_side && <Fact name="Network side">{node.network_side}</Fact>}
        {node.setup && <Fact name="Connects to">{node.setup.urls.node_api}</Fact>}
      </Facts>
    </Card>
  );
}

function Usage({ free, total }: { free: number; total: number }) {
  return (
    <>
      {bytesInWords(total)}, <span className="text-ink-muted">{bytesInWords(free)} free</span>
      <span className="mt-1 block h-1.5 max-w-40 rounded-sm bg-sunken" aria-hidden="true">
        <span
          className="block h-full rounded-sm bg-line-strong"
          style={{ width: `${total > 0 ? (1 - free / total) * 100 : 0}%` }}
        />
      </span>
    </>
  );
}

function Accelerators({ accelerators }: { accelerators: HostFacts["accelerators"] }) {
  if (accelerators.length === 0) return <span className="text-ink-muted">none found</span>;
  return (
    <ul>
      {accelerators.map((each) => (
        <li key={each.address}>
          {each.vendor} {each.model} <span className="font-mono text-xs text-ink-muted">{each.address}</span>
        </li>
      ))}
    </ul>
  );
}
