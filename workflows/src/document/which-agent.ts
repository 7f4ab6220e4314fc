// Which agents may run a step, in words.

import type { Node } from "./schema.ts";

export function whichAgent(node: Node | undefined): string {
  const selector = node && "execution" in node ? node.execution?.selector : undefined;
  if (selector?.tag !== undefined) return `an agent with the tag ${selector.tag}`;
  if (selector?.group !== undefined) return `an agent of the group ${selector.group}`;
  return selector?.agentId === undefined ? "an agent" : `the agent ${selector.agentId}`;
}
