// The agent that the server hands out to machines, and the line that brings a node to it.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";

const AgentRelease = z.strictObject({
  version: z.string(),
  archives: z.array(
    z.strictObject({
      arch: z.enum(["x64", "arm64"]),
      url: z.string().describe("Requires no sign-in. Compare the download with `sha256`."),
      sha256: z.string(),
      bytes: z.int(),
    }),
  ),
  upgrade_command: z
    .string()
    .describe(
      "Command for a node, run as root: upgrades its agent to this version, and rolls back if it does not work there.",
    ),
});

export const getAgentRelease = endpoint({
  name: "getAgentRelease",
  noun: "nodes",
  method: "GET",
  path: "/v1/agent-release",
  summary: "Read the agent release that this server serves",
  access: { scope: "nodes:read" },
  answer: AgentRelease,
  errors: ["not_found"],
});
