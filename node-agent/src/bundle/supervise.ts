// The agent of a host on which recovery bundles may be applied: runs the agent with the set in force, tries a staged bundle
// beside it, and starts the agent again with the new set once that has worked. A host without any state of a node only
// tries the bundle. What is tried is loaded when there is something to try.

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { backoffDelay } from "@holdfast/kit/backoff";
import { openDiagnostics } from "../diagnostics/ring.ts";
import { detectHost } from "../host/facts.ts";
import { watchInstallation } from "../host/installation.ts";
import { readAgentFile } from "../identity/agent-file.ts";
import { HostProblem, stateFiles } from "../identity/state-directory.ts";
import { classifyError, LinkFailure } from "../link/failures.ts";
import type { Log } from "../log.ts";
import type { AgentSettings, RunningAgent } from "../main.ts";
import { agentSettings } from "../settings.ts";
import { agentVersion } from "../version.ts";
import { isGivenUp } from "./decide.ts";
import { finish, finishInterrupted, revert } from "./settle.ts";
import { readStaged, type Staged, stagedPath } from "./staged.ts";

export type SuperviseOptions = {
  settings: AgentSettings;
  log: Log;
  /** The agent with the set in force. */
  start: (settings: AgentSettings) => Promise<RunningAgent>;
  /** How often it looks for a bundle. */
  everyMs?: number;
  retry?: { firstMs: number; maxMs: number };
};

const EVERY_MS = 5_000;
const RETRY = { firstMs: 2_000, maxMs: 60_000 };

export async function superviseBundles(options: SuperviseOptions): Promise<RunningAgent> {
  const { log, start, retry = RETRY } = options;
  let { settings } = options;
  const { stateDir } = settings;
  const files = stateFiles(stateDir);
  const instanceId = randomUUID();
  const stop = new AbortController();
  let agent: RunningAgent | undefined;
  let underWay: Promise<void> | undefined;

  const record = (reason: DiagnosticReason, detail: string, correlationId?: string) => {
    if (agent) return log.warn(reason, { reason, detail, correlation_id: correlationId });
    const diagnostics = openDiagnostics(stateDir, { log, instanceId });
    diagnostics.record(reason, detail, correlationId);
    diagnostics.close();
  };

  const host = () => {
    const detected = detectHost({ agentVersion, stateDir, advertisedAddress: settings.advertiseAddress ?? null });
    const installation = watchInstallation({ stateDir, program: process.argv[1] ?? "" });
    return {
      ...{ facts: detected.hostFacts, bootId: detected.bootId, instanceId, signal: stop.signal },
      startedAt: Date.now(),
      setup: () => ({
        ...{ ...installation(), source_address: null, root_disk: null },
        ...{ provider: settings.provider ?? null, network_side: settings.networkSide ?? null },
      }),
    };
  };

  /** Returns whether the trial has ended. */
  const attempt = async (staged: Staged): Promise<boolean> => {
    const { bundle_id, seq } = staged.bundle.content;
    try {
      const { tryBundle } = await import("./trial.ts");
      const committed = staged.committed ? staged : await tryBundle(files, staged, host());
      await agent?.stop();
      agent = undefined;
      finish(files, committed);
    } catch (error) {
      if (stop.signal.aborted) return true;
      const { reason, detail } = classifyError(error);
      record(
        reason,
        `recovery bundle ${seq}: ${detail}`,
        error instanceof LinkFailure ? error.correlationId : undefined,
      );
      const last = readStaged(files);
      if (!last || last.committed || !isGivenUp(factsOf(last, error))) return false;
      revert(files, last, detail);
      record("recovery_enrollment_blocked", `recovery bundle ${seq} was given up: ${detail}`);
      return true;
    }
    log.info("recovery bundle applied", { bundle_id, seq });
    settings = withoutOverrides(settings, staged.bundle.content.files.env.unset);
    agent = await start(settings);
    return true;
  };

  const tryAll = async () => {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      const staged = readStaged(files);
      if (!staged || (await attempt(staged))) return;
      await pause(backoffDelay(retry, failures), stop.signal);
    }
  };
  const look = () => {
    if (underWay || !existsSync(stagedPath(files))) return;
    underWay = tryAll().finally(() => {
      underWay = undefined;
    });
  };

  finishInterrupted(files);
  // A host that lost its state has nothing to run with before its bundle has worked.
  if (!readStaged(files) || hasState(files)) agent = await start(settings);
  look();
  const looking = setInterval(look, options.everyMs ?? EVERY_MS);
  return {
    ports: agent?.ports ?? {},
    isAlive: () => agent?.isAlive() ?? true,
    async stop() {
      stop.abort();
      clearInterval(looking);
      await underWay;
      await agent?.stop();
    },
  };
}

function factsOf(staged: Staged, error: unknown) {
  const failure = error instanceof LinkFailure ? error.failure : undefined;
  return {
    code: failure?.kind === "answer" ? failure.code : undefined,
    expiresAt: Date.parse(staged.bundle.content.expires_at),
    hasIdentity: staged.issued !== undefined,
    now: Date.now(),
  };
}

function hasState(files: ReturnType<typeof stateFiles>): boolean {
  try {
    return readAgentFile(files) !== undefined;
  } catch (error) {
    if (error instanceof HostProblem) return false;
    throw error;
  }
}

/** What the bundle removed from the settings file is still in the environment of this process. */
function withoutOverrides(settings: AgentSettings, unset: readonly string[]): AgentSettings {
  const names = new Set(unset);
  const overridden = Object.entries(agentSettings)
    .filter(([, { env, aliases }]) => [env, ...aliases].some((name) => names.has(name)))
    .map(([key]) => [key, undefined]);
  return { ...settings, ...Object.fromEntries(overridden) };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done);
  });
}
