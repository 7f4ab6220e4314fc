// The command `agent` of an installation: that of a host, and what needs a server. The agent that is shipped to hosts has only
// the former.

import type { Command } from "commander";
import { agentCommand } from "./agent.ts";
import { addPaired } from "./paired.ts";

export function agentCommandWithPaired(): Command {
  const agent = agentCommand();
  addPaired(agent);
  return agent;
}
