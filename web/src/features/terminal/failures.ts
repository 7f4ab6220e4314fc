// Where a terminal failed and who can repair it, in words for the page.

import type { TerminalFailureEntry, TerminalHop } from "@holdfast/contracts/terminal-failures";

/** Where on the way from the browser to the shell. */
const hopWords: Record<TerminalHop, string> = {
  terminal_token_mint: "asking for permission",
  terminal_public_route: "between your browser and the gateway",
  browser_terminal_ws: "at the terminal gateway",
  node_heartbeat: "the node's connection to Holdfast",
  terminal_open_task: "handing the task to the node",
  node_terminal_reachability: "between the node and the gateway",
  gateway_node_stream: "the node's stream to the gateway",
  workload_terminal_startup_failure: "starting the shell on the node",
  terminal_ready_frame: "waiting for the terminal",
};

const ownerWords: Record<TerminalFailureEntry["owner"], string> = {
  tenant: "you, or an administrator of your organization",
  operator: "the operator of this installation",
  network: "whoever runs the network between node and gateway",
  node: "whoever runs the node",
  "control plane": "the operator of this installation",
};

export const hopInWords = (hop: string) => hopWords[hop as TerminalHop] ?? hop.replaceAll("_", " ");
export const ownerInWords = (owner: string) => ownerWords[owner as TerminalFailureEntry["owner"]] ?? owner;
