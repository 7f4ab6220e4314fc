// What a person should look at on a node: what it is, and what to do now. Commands name the node, so that
// they can be copied as they are.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
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
                {owners[item.owner]}, at the hop {item.hop} · <span className="font-mono">{item.signal}</span>
              </p>
            )}
          </Notice>
        </li>
      ))}
    </ul>
  );
}
