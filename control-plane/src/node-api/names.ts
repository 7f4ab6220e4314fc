// The addresses of the node-facing listener that are published to agents.

import { isLoopback } from "@holdfast/service/settings";

export function onlyThisMachine(address: string): boolean {
  return isLoopback(new URL(address).hostname.replace(/^\[|\]$/g, ""));
}
