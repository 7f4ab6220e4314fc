// What agents are told about where the node-facing listener is.

import { isLoopback } from "@holdfast/service/settings";

export function onlyThisMachine(address: string): boolean {
  return isLoopback(new URL(address).hostname.replace(/^\[|\]$/g, ""));
}
