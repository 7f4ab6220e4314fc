// The problems of a node that need a person, each with its next step. Commands name the node, so that
// they can be pasted as they stand.

import { placeText } from "@holdfast/contracts/diagnostics";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { CopyableId } from "../../design/Copy.tsx";
import { Notice } from "../../design/Notice.tsx";
import { Prose } from "../../design/Prose.tsx";
import { owners } from "./owners.ts";

export function Attention({ node }: { node: Pick<Node, "attention" | "name"> }) {
  const items = node.attention;
  if (items.length === 0) return null;
  return (
    <ul className="grid gap-2" aria-label="Needs attention">
      {items.map((item) => (
        <li key={`${item.code} ${item.message}`}>
          <Notice state="degraded" title={item.message}>
            <Prose text={item.next_step.replaceAll("<id>", node.name)} />
            {item.hop && (
              <p className="mt-1 text-sm text-ink-muted">
                {owners[item.owner]} · hop {placeText(item)} · <span className="font-mono">{item.signal}</span>
              </p>
            )}
            {item.correlation_id && (
              <p className="mt-1 flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
                Correlation id <CopyableId id={item.correlation_id} label="Copy correlation id" />
              </p>
            )}
          </Notice>
        </li>
      ))}
    </ul>
  );
}
