// A real agent inside the test's process, joined to the API's faulty twin.

import http from "node:http";
import { readSettings } from "@holdfast/kit/settings";
import { join } from "../../node-agent/src/identity/join.ts";
import { createLog } from "../../node-agent/src/log.ts";
import { type AgentOptions, startAgent } from "../../node-agent/src/main.ts";
import { agentSettings } from "../../node-agent/src/settings.ts";
import type { FakeApi } from "../../node-agent/test/support/fake-api.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { someFacts } from "./facts.ts";
import { scratchDirectory } from "./scratch.ts";

export type TestAgent = {
  stateDir: string;
  url: string;
  /** Everything that was logged so far, a line each. */
  logged: () => string;
  get: (path: string, headers?: Record<string, string>) => Promise<{ status: number; text: string }>;
  stop(): Promise<void>;
};

export async function joinedDirectory(api: FakeApi): Promise<string> {
  const stateDir = scratchDirectory();
  await join({ token: api.token(), apiUrl: api.url, stateDir, facts: someFacts });
  return stateDir;
}

/** In a state directory that has joined, or one made for the API's faulty twin. */
export async function startTestAgent(
  at: FakeApi | { stateDir: string },
  options: Omit<AgentOptions, "log"> & { stateDir?: string; env?: Record<string, string> } = {},
): Promise<TestAgent> {
  const stateDir = options.stateDir ?? ("stateDir" in at ? at.stateDir : await joinedDirectory(at));
  const settings = readSettings(agentSettings, {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    HOLDFAST_AGENT_PORT: "0",
    ...options.env,
  });
  const lines: string[] = [];
  const log = createLog({ level: "debug", write: (line) => lines.push(line) });
  // The shortest pause each time: what comes after it is under test.
  const running = await startAgent(settings, { random: () => 0, ...options, log });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  const url = `http://127.0.0.1:${running.ports["local"]}`;
  return {
    stateDir,
    url,
    logged: () => lines.join(""),
    // Not `fetch`, which always says the Host that it connects to.
    get: (path, headers = {}) =>
      new Promise((resolve, reject) => {
        http
          .get(url + path, { headers, agent: false }, async (response) => {
            let text = "";
            for await (const part of response.setEncoding("utf8")) text += part;
            resolve({ status: response.statusCode ?? 0, text });
          })
          .once("error", reject);
      }),
    stop,
  };
}
