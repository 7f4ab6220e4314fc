// An agent that runs steps inside the test's process, connected to a stand-in gateway, with its files in a directory of the test.

import { join } from "node:path";
import { readSettings } from "@holdfast/kit/settings";
import { expect } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import type { Credentials } from "../../src/execution/credentials.ts";
import { type OpenOptions, openExecutionAgent } from "../../src/execution/open.ts";
import { executionSettings } from "../../src/execution/settings.ts";
import { createLog } from "../../src/log.ts";
import { hostBackend } from "./host-backend.ts";
import type { StandInGateway } from "./stand-in-gateway.ts";

type Options = Partial<Omit<OpenOptions, "settings">> & { directory?: string; env?: Record<string, string> };

/** Connected already, unless `isConnected` is false. */
export async function startTestExecutionAgent(
  gateway: StandInGateway,
  { directory = scratchDirectory(), env = {}, ...options }: Options = {},
  { isConnected = true } = {},
) {
  const lines: string[] = [];
  const settings = readSettings(executionSettings, {
    ...hostBackend,
    HOLDFAST_EXECUTION_WORKDIR_ROOT: join(directory, "workdir"),
    ...env,
  });
  const agent = await openExecutionAgent({
    credentials: gateway.credentials() as Credentials,
    credentialsPath: join(directory, "agent.json"),
    agentVersion: "1.0.0",
    log: createLog({ level: "debug", write: (line) => lines.push(line), journald: false }),
    // The shortest pause each time: what comes after it is under test.
    random: () => 0,
    deliveryMs: 1000,
    // Not by the clock: a test that counts results may take long.
    resend: { firstMs: 3_600_000, maxMs: 3_600_000 },
    ...options,
    settings,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= agent.stop();
    return stopped;
  };
  atEnd(() => {
    agent.kill();
    return stop();
  });
  if (isConnected) await expect.poll(agent.isConnected).toBe(true);
  return {
    ...agent,
    directory,
    workdir: join(directory, "workdir", gateway.agentId),
    stop,
    logged: () => lines.join(""),
  };
}
