// Settings of agents that run steps. The gateway reads the same declarations.

import { agentStaleSetting, executionWsUrlSetting } from "@holdfast/service/settings";

export const agentSettings = {
  agentStaleMs: agentStaleSetting,
  executionWsUrl: executionWsUrlSetting,
};

/** After which the list shows an agent as offline. */
export const shownStaleMs = (staleMs: number) => Math.min(300_000, Math.max(30_000, staleMs));
