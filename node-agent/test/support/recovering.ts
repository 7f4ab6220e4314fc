// What tests of a whole agent that recovers have in common.

import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { joinedDirectory, startTestAgent, type TestAgent } from "../../../testkit/agent/agent.ts";
import { readAgentFile } from "../../src/identity/agent-file.ts";
import { stateFiles } from "../../src/identity/state-directory.ts";
import { openRecoveryFile, readRecoveryFile } from "../../src/recovery/state-file.ts";
import { type FakeApi, type Fault, startFakeApi } from "./fake-api.ts";

const quick = { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "1" };
export const startQuick = (stateDir: string, env = {}) =>
  startTestAgent({ stateDir }, { env: { ...quick, ...env } });
export const recorded = (agent: TestAgent) => readFileSync(`${agent.stateDir}/diagnostics.log`, "utf8");
export const recovers = (agent: TestAgent) => expect.poll(() => recorded(agent)).toContain("recovered at");
export const stateOf = (stateDir: string) => readRecoveryFile(stateFiles(stateDir), nodeIdOf(stateDir));
const nodeIdOf = (stateDir: string) => readAgentFile(stateFiles(stateDir))?.node_id ?? "";
export const metric = async (agent: TestAgent, name: string) =>
  Number(new RegExp(`^holdfast_agent_${name} (\\S+)$`, "m").exec((await agent.get("/metrics")).text)?.[1]);
const unavailable: Fault = { do: "answer", status: 503, body: '{"code":"database_unavailable","message":"m"}' };
/** Its certificates are over when they arrive, and are not renewed. */
export const shortLived = async () => {
  const api = await startFakeApi({ validityMs: 1 });
  api.recovery.offers = true;
  api.fault = (path) => (path === "/renew" ? unavailable : undefined);
  return api;
};
/** As after a while with a working link. */
export const withToken = async (api: FakeApi, stateDir?: string) => {
  const directory = stateDir ?? (await joinedDirectory(api));
  const files = stateFiles(directory);
  const store = openRecoveryFile(files, nodeIdOf(directory));
  store.write({ ...store.read(), token: api.recovery.issue() });
  store.close();
  return { stateDir: directory, files };
};
