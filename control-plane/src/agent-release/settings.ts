// Settings about the versions of agents.

import { setting } from "@holdfast/kit/settings";
import { isAgentVersion, OLDEST_SUPPORTED_AGENT } from "./versions.ts";

export const agentReleaseSettings = {
  agentRequiredVersion: setting(
    {
      allowed: "a version such as 0.1.0",
      parse: (text: string) => (isAgentVersion(text) ? text : undefined),
    },
    {
      env: "HOLDFAST_NODE_AGENT_REQUIRED_VERSION",
      default: OLDEST_SUPPORTED_AGENT,
      help: "Nodes with an older agent are reported: agent_version_drift.",
    },
  ),
};
