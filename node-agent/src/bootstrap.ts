// The agent of a host that has a bootstrap token and no identity yet: retries until it has joined, and then runs as the
// agent. No failure of the server or the network ends it; each refusal is recorded before the next attempt, and `/healthz`
// reports the last one.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { backoffDelay } from "@holdfast/kit/backoff";
import { UsageError } from "@holdfast/kit/settings";
import { openDiagnostics } from "./diagnostics/ring.ts";
import { detectHost } from "./host/facts.ts";
import { nodeApiUrl, readAgentFile } from "./identity/agent-file.ts";
import { JoinFailure } from "./identity/enroll.ts";
import { parseEnrollmentToken } from "./identity/enrollment-token.ts";
import { checkedOrigin, type Joined, join } from "./identity/join.ts";
import { HostProblem, prepareStateDirectory, stateFiles } from "./identity/state-directory.ts";
import { retryDelay } from "./link/decisions.ts";
import type { Classified } from "./link/failures.ts";
import { openLocalListener } from "./local/listener.ts";
import type { Log } from "./log.ts";
import type { AgentSettings, RunningAgent } from "./main.ts";
import { createMetrics } from "./metrics.ts";
import { agentVersion } from "./version.ts";
import { detectVmHost } from "./vms/detect.ts";

/** Only a person can fix a refusal, and each attempt counts against the rate limit of this address. */
const refused = { firstMs: 10_000, maxMs: 600_000 };

export async function startUnjoined(
  settings: AgentSettings & { bootstrapToken: string },
  options: {
    log: Log;
    /** The agent, once there is an identity. */
    start: () => Promise<RunningAgent>;
    onStatus?: (text: string) => void;
    pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  },
): Promise<RunningAgent> {
  const { log, start, pause = pauseFor } = options;
  const { stateDir, bootstrapToken, nodeName } = settings;
  const token = parseEnrollmentToken(bootstrapToken, ["bootstrap"]).text;
  const apiUrl = checkedOrigin(addressOf(settings));
  prepareIfPossible(stateDir);
  const diagnostics = openDiagnostics(stateDir, { log, instanceId: randomUUID() });
  const host = detectHost({
    ...{ agentVersion, stateDir, advertisedAddress: settings.advertiseAddress ?? null },
    // The server checks the registration of a VM host as such.
    capabilities: detectVmHost(settings).setup ? [VM_HOST] : [],
  });
  const metrics = createMetrics();
  const stop = new AbortController();
  const stopped = new Promise<undefined>((resolve) => {
    stop.signal.addEventListener("abort", () => resolve(undefined));
  });
  let problem: Classified | undefined;
  let started: RunningAgent | undefined;

  const attempt = () => join({ token, apiUrl, stateDir, nodeName, facts: host.hostFacts(), attempts: 1 });
  /** Undefined: it was stopped. */
  const joined = async (): Promise<Joined | undefined> => {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      try {
        return await Promise.race([attempt(), stopped]);
      } catch (error) {
        problem = explain(error);
        options.onStatus?.(`not joined: ${problem.reason}`);
        diagnostics.record(
          problem.reason,
          problem.detail,
          error instanceof JoinFailure ? error.correlationId : undefined,
        );
        const delay =
          problem.reason === "recovery_enrollment_blocked"
            ? backoffDelay(refused, failures)
            : retryDelay({ ...problem, failures }, Math.random());
        await pause(delay, stop.signal);
      }
    }
    return undefined;
  };

  const listener = await openLocalListener(
    {
      ...{ bind: settings.bind, port: settings.port },
      onTaken: (why) => log.warn(why),
      onForged: (detail) => diagnostics.record("certificate_header_refused", detail),
    },
    {
      healthz: () => ({
        ok: true,
        connected: false,
        standing: null,
        last_heartbeat_at: null,
        problem: problem?.reason ?? null,
        findings: [],
      }),
      capacity: () => {
        const { cpus, memory_bytes, memory_free_bytes } = host.hostFacts();
        return { cpus, memory_bytes, memory_free_bytes, running: 0, room: 0 };
      },
      metrics: () => metrics.text(),
    },
  );
  log.info("this host has no identity; joining with its bootstrap token", { api: apiUrl, port: listener.port });

  // Not handled: an error here ends the process, as it would at the start of the agent.
  const agent = joined().then(async (node) => {
    diagnostics.close();
    await listener.close();
    if (!node || stop.signal.aborted) return undefined;
    log.info("joined", { node_id: node.nodeId, node_name: node.nodeName });
    started = await start();
    return started;
  });
  return {
    ports: { local: listener.port },
    isAlive: () => started?.isAlive() ?? true,
    async stop() {
      stop.abort();
      await (await agent)?.stop();
    },
  };
}

/** Until then, or until it is stopped. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** A host that has been a node knows where its server is. */
function addressOf({ nodeApiUrl: configured, stateDir }: AgentSettings): string {
  const known = configured === undefined ? readAgentFile(stateFiles(stateDir)) : undefined;
  const address = configured ?? (known && nodeApiUrl(known, undefined));
  if (address !== undefined) return address;
  throw new UsageError(
    "HOLDFAST_BOOTSTRAP_TOKEN is set, but not where to use it. Set HOLDFAST_NODE_API_URL to the address that " +
      "`holdfast node token create --bootstrap` printed.",
  );
}

/** So that the history has a file. If it cannot be created, the first attempt reports why. */
function prepareIfPossible(directory: string): void {
  try {
    prepareStateDirectory(directory);
  } catch (error) {
    if (!(error instanceof HostProblem)) throw error;
  }
}

function explain(error: unknown): Classified {
  if (error instanceof HostProblem) {
    return { reason: error.reason, detail: error.message, retryAfterMs: undefined };
  }
  if (error instanceof JoinFailure) {
    const { reason, code, message, nextStep, kind, retryAfterMs } = error;
    const detail = kind === "refused" ? `${code}: ${message} ${nextStep}` : message;
    return { reason, detail, retryAfterMs };
  }
  return { reason: "control_plane_unreachable", detail: (error as Error).message, retryAfterMs: undefined };
}
