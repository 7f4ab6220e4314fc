// Hosts whose nodes are recovered with bundles of a real api.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join as joinPath } from "node:path";
import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { createBundle } from "@holdfast/contracts/endpoints/bundles";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { readSettings } from "@holdfast/kit/settings";
import { someFacts, someSetup } from "../../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { type ApplyOptions, applyBundle } from "../../src/bundle/apply.ts";
import { parseFile, parseLine } from "../../src/bundle/read.ts";
import { superviseBundles } from "../../src/bundle/supervise.ts";
import type { TrialHost } from "../../src/bundle/trial.ts";
import { join } from "../../src/identity/join.ts";
import { stateFiles } from "../../src/identity/state-directory.ts";
import { createLog } from "../../src/log.ts";
import { type RunningAgent, startAgent } from "../../src/main.ts";
import { agentSettings } from "../../src/settings.ts";

export type Created = AnswerOf<typeof createBundle>;
export type Host = { root: string; stateDir: string; nodeId: string };

const UNIT = "etc/systemd/system/holdfast-agent.service";
export const OLD_UNIT = "[Service]\nExecStart=/opt/holdfast-agent/old\n";
export const OLD_ENV =
  "# ours\nHOLDFAST_NODE_PROVIDER=acme\nHOLDFAST_NODE_API_URL=https://old.example.com:18442\n";

/** With the files of the installer, below a root of its own. */
export async function joinedHost(client: Client, apiUrl: string, nodeId?: string): Promise<Host> {
  const root = scratchDirectory();
  const stateDir = joinPath(root, "etc/holdfast");
  mkdirSync(stateDir, { recursive: true });
  mkdirSync(dirname(joinPath(root, UNIT)), { recursive: true });
  writeFileSync(joinPath(root, UNIT), OLD_UNIT);
  writeFileSync(joinPath(stateDir, "agent.env"), OLD_ENV);
  const { token } = await client(createEnrollmentToken, { body: { node_id: nodeId } });
  const joined = await join({ token, apiUrl, stateDir, facts: someFacts });
  return { root, stateDir, nodeId: joined.nodeId };
}

export function copyOf({ root, nodeId }: Host): Host {
  const copy = scratchDirectory();
  cpSync(root, copy, { recursive: true });
  return { root: copy, stateDir: joinPath(copy, "etc/holdfast"), nodeId };
}

export function bundleFor(client: Client, nodeId: string): Promise<Created> {
  return client(createBundle, { params: { node_id: nodeId }, body: {} });
}

export function applyTo(
  { stateDir, root }: Omit<Host, "nodeId">,
  created: Created,
  more: Partial<ApplyOptions> = {},
) {
  return applyBundle(parseFile(JSON.stringify(created.bundle)), { stateDir, root, ...more });
}

export function applyLineTo({ stateDir, root }: Host, line: string, more: Partial<ApplyOptions> = {}) {
  return applyBundle(parseLine(line), { stateDir, root, ...more });
}

export function unitOf({ root }: Host): string {
  return readFileSync(joinPath(root, UNIT), "utf8");
}

export function envOf({ stateDir }: Host): string {
  return readFileSync(joinPath(stateDir, "agent.env"), "utf8");
}

/** The set in force, as it is on disk. */
export function setOf({ stateDir }: Host): string[] {
  const { identity, trust, agent } = stateFiles(stateDir);
  return [identity, trust, agent].map((path) => readFileSync(path, "utf8"));
}

export function trialHost(more: Partial<TrialHost> = {}): TrialHost {
  const { urls: _, ...setup } = someSetup;
  return {
    ...{ facts: () => someFacts, setup: () => setup, instanceId: crypto.randomUUID(), bootId: "boot" },
    ...{ signal: new AbortController().signal, startedAt: Date.now(), ...more },
  };
}

/** As `holdfast agent run` starts it. */
export async function runAgentOn(
  { stateDir }: Pick<Host, "stateDir">,
  env: Record<string, string> = {},
): Promise<RunningAgent & { logged(): string }> {
  const lines: string[] = [];
  const log = createLog({ level: "debug", write: (line) => lines.push(line) });
  const settings = readSettings(agentSettings, {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    HOLDFAST_AGENT_PORT: "0",
    ...env,
  });
  const running = await superviseBundles({
    ...{ settings, log, everyMs: 50, retry: { firstMs: 50, maxMs: 200 } },
    start: (inForce) => startAgent(inForce, { log }),
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  return { ...running, stop, logged: () => lines.join("") };
}
