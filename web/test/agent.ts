// A real agent in the test's process, joined with a token as a machine would be.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { readSettings } from "@holdfast/kit/settings";
import { detectHost } from "../../node-agent/src/host/facts.ts";
import { join } from "../../node-agent/src/identity/join.ts";
import { startAgent } from "../../node-agent/src/main.ts";
import { agentSettings } from "../../node-agent/src/settings.ts";
import { agentVersion } from "../../node-agent/src/version.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

export async function joinAndRun(options: { token: string; apiUrl: string; name?: string }): Promise<{
  nodeId: string;
  stop(): Promise<void>;
}> {
  const stateDir = mkdtempSync(joinPath(tmpdir(), "holdfast-web-agent-"));
  atEnd(() => rmSync(stateDir, { recursive: true, force: true }));
  const host = detectHost({ agentVersion, stateDir, advertisedAddress: null });
  const { nodeId } = await join({
    token: options.token,
    apiUrl: options.apiUrl,
    stateDir,
    facts: host.hostFacts(),
    ...(options.name ? { nodeName: options.name } : {}),
  });
  const settings = readSettings(agentSettings, {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    HOLDFAST_AGENT_PORT: "0",
    // On a busy machine one may come late and look like a clock that is behind; the next one is soon here.
    HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2",
    HOLDFAST_AGENT_LOG_LEVEL: "error",
  });
  const running = await startAgent(settings);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  return { nodeId, stop };
}
