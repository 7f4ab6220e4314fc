// What is said of a node whose connection changed, until its evidence is classified.

import type { Node } from "@holdfast/contracts/endpoints/nodes";

export function pendingWords({ connection }: Pick<Node, "connection">): string {
  return connection === "online" ? "Back online, being checked" : "Offline, cause being determined";
}
