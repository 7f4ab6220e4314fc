// The problems of a node that need a person, each with its next step. Commands name the node, so that
// they can be pasted as they stand.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { placeText } from "@holdfast/contracts/reasons/hops";
import { nodeOwnerWords } from "@holdfast/contracts/reasons/owners";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";

export function Attention({ node }: { node: Pick<Node, "attention" | "name"> }) {
  const items = node.attention;
  if (items.length === 0) return null;
  return (
    <ul className="grid gap-2" aria-label="Needs attention">
      {items.map((item) => (
        <li key={`${item.code} ${item.message}`}>
          <Notice state="degraded" title={item.title}>
            <p>
              <Prose text={item.message} />
            </p>
            <p>
              <Prose text={adviceFor(node.name, item.next_step)} />
            </p>
            <p className="mt-1 text-sm text-ink-muted">
              {item.severity && `${item.severity} · `}
              {item.hop && `${nodeOwnerWords[item.owner].place} · hop ${placeText(item)} · `}
              <span className="font-mono">{item.code}</span>
              {item.signal && item.signal !== item.code && (
                <>
                  {" "}
                  · signal <span className="font-mono">{item.signal}</span>
                </>
              )}
            </p>
            {item.runbook && (
              <p className="text-sm text-ink-muted">
                Runbook <span className="font-mono">{item.runbook}</span>
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
