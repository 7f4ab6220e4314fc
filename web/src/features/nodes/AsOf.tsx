// How old it is what a node reported, where the node does not report any more.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { When } from "../../design/values/When.tsx";

type Reporting = Pick<Node, "connection" | "heartbeat_at">;

/** Only then is what the node reported last also true now. */
export function isCurrent({ connection }: Pick<Node, "connection">): boolean {
  return connection === "online";
}

export function AsOf({ node }: { node: Reporting }) {
  if (isCurrent(node) || !node.heartbeat_at) return null;
  return (
    <span className="text-sm text-ink-muted">
      as of <When at={node.heartbeat_at} />
    </span>
  );
}
