// Agents that run steps, many in one process, each paired by the public API and with a journal of its own on the disk: for
// the `execute` bench. Prints a line when all of them are connected.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken } from "@holdfast/contracts/endpoints/agents";
import { readSettings } from "@holdfast/kit/settings";
import type { ExecutionAgent } from "@holdfast/node-agent/execution/agent";
import { openExecutionAgent } from "@holdfast/node-agent/execution/open";
import { pair } from "@holdfast/node-agent/execution/pair";
import { executionSettings } from "@holdfast/node-agent/execution/settings";
import { createLog } from "@holdfast/node-agent/log";

export type StepAgents = {
  apiUrl: string;
  operatorToken: string;
  orgId: string;
  agents: number;
  maxInFlight: number;
  tag: string;
  directory: string;
};

const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as StepAgents;
const call = createClient({ baseUrl: options.apiUrl, token: options.operatorToken });
const log = createLog({ level: "error" });
const settings = readSettings(executionSettings, { HOLDFAST_EXECUTION_WORKDIR_ROOT: options.directory });

const running: ExecutionAgent[] = [];
for (let number = 1; number <= options.agents; number += 1) {
  const directory = join(options.directory, String(number));
  mkdirSync(directory);
  const { token } = await call(createAgentPairingToken, { params: { org_id: options.orgId } });
  const credentials = await pair({
    apiBaseUrl: options.apiUrl,
    pairingToken: token,
    name: `bench-${number}`,
    agentVersion: "bench",
    capabilities: { kinds: ["connector.action"] },
  });
  const { maxInFlight, tag } = options;
  const place = { credentials, credentialsPath: join(directory, "agent.json"), settings };
  running.push(await openExecutionAgent({ ...place, agentVersion: "bench", tags: [tag], maxInFlight, log }));
}
while (!running.every((agent) => agent.isConnected())) await wait(20);
process.stdout.write(`${JSON.stringify({ connected: running.length })}\n`);

process.once("SIGTERM", async () => {
  await Promise.all(running.map((agent) => agent.stop()));
  process.exit(0);
});
