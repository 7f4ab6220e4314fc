// Settings of agents that run steps. The gateway reads the same declarations.

import { oneOf, setting } from "@holdfast/kit/settings";
import { agentStaleSetting, executionWsUrlSetting } from "@holdfast/service/settings";

export const nodeExecutionSettings = {
  nodeExecutions: setting(oneOf("on", "off"), {
    env: "HOLDFAST_NODE_EXECUTIONS",
    default: "off",
    help: "`on`: nodes whose owner sets HOLDFAST_AGENT_EXECUTIONS=on run steps of workflows with their own identity, without a pairing token.",
  }),
};

export const agentSettings = {
  ...nodeExecutionSettings,
  agentStaleMs: agentStaleSetting,
  executionWsUrl: executionWsUrlSetting,
};

/** After which the list shows an agent as offline. */
export const shownStaleMs = (staleMs: number) => Math.min(300_000, Math.max(30_000, staleMs));
