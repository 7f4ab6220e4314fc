// The agent that runs steps, with its files on this host: journal, pinned keys, working directories.

import { dirname, join } from "node:path";
import { sandboxDrivers } from "../drivers/sandbox/all.ts";
import type { KeySet } from "../identity/accept-trust.ts";
import { ownDirectory } from "../identity/state-directory.ts";
import { journalIdOf } from "../journal/identity.ts";
import { openJournal } from "../journal/journal.ts";
import { isLoopbackName } from "../loopback.ts";
import { type ExecutionAgent, type ExecutionAgentOptions, startExecutionAgent } from "./agent.ts";
import { createBackends } from "./backends.ts";
import { trustWith } from "./certificates.ts";
import type { Credentials } from "./credentials.ts";
import type { ExecutionReport } from "./deliveries.ts";
import { openPinnedKeys } from "./key-set.ts";
import { type PolicyValues, policyOf } from "./policy.ts";
import { EXECUTION_STATE_DIR, type ExecutionValues } from "./settings.ts";

export type OpenOptions = Omit<
  ExecutionAgentOptions,
  "credentials" | "journal" | "journalId" | "keys" | "sandbox" | "secureContext"
> & {
  credentials: Credentials;
  /** Where credentials of ours are, or would be: the state is kept beside it. */
  credentialsPath: string;
  settings: PolicyValues &
    Pick<ExecutionValues, "stateDir" | "caFile" | "backend" | "workdirRoot" | "connectorNetworks">;
};

/** Not a directory of its own: one agent with two journals would run a step twice. */
const PAIR_ANOTHER =
  "pair this one as another agent: holdfast agent connect --credentials <file> --pairing-token <token> --api-base <url>";
const MEBIBYTE = 1024 * 1024;

/** Throws HostProblem about the state directory, and UsageError. */
export async function openExecutionAgent(options: OpenOptions): Promise<ExecutionAgent> {
  const { credentials, settings, log } = options;
  const { agentId, gatewayWsUrl } = credentials;
  const { protocol, hostname } = new URL(gatewayWsUrl);
  if (protocol === "ws:" && !isLoopbackName(hostname)) {
    log.warn(
      "the connection to the gateway is not encrypted: use it in a trusted network only, or a wss:// address",
      {
        gateway: gatewayWsUrl,
      },
    );
  }
  const secureContext = trustWith(settings.caFile);
  // By agent: another pairing has another journal, so that results never go to the wrong organization.
  const stateDir = join(settings.stateDir ?? join(dirname(options.credentialsPath), "executions"), agentId);
  // Results that wait in a journal are delivered although the disk is full.
  ownDirectory(stateDir, EXECUTION_STATE_DIR);
  const journal = openJournal<ExecutionReport>(stateDir, {
    sizeBytes: journalBytes(options.maxInFlight ?? 1),
    setting: EXECUTION_STATE_DIR,
    alternative: PAIR_ANOTHER,
  });
  try {
    if (journal.damage) log.warn("the journal was damaged", { detail: journal.damage });
    const journalId = journalIdOf(stateDir, {
      isDamaged: journal.damage !== undefined,
      onUnwritable: (error) =>
        log.warn("the id of the journal cannot be written: it is valid until the agent ends", { error }),
    });
    const { workdirRoot, image } = settings;
    const drivers = sandboxDrivers({
      ...{ owner: agentId, root: join(workdirRoot, agentId), image, environment: process.env },
    });
    let left = 0;
    // Also those that are not the backend any more.
    for (const driver of drivers) left += await driver.recover();
    if (left > 0) log.warn("ended what steps of an earlier agent had left running", { runs: left });
    const keys = openPinnedKeys({
      file: join(stateDir, "key-set.json"),
      paired: credentials.keySet as KeySet | undefined,
      log,
    });
    const backends = createBackends(drivers, settings.backend);
    const sandbox = { backends, policy: policyOf(settings), environment: process.env };
    // Whoever prints a variable of the host by mistake does not publish it.
    const passedOn = settings.envPassthrough.flatMap((name) => process.env[name] ?? []);
    const hostSecrets = [...(options.hostSecrets ?? []), ...passedOn];
    const { connectorNetworks } = settings;
    return startExecutionAgent({
      ...options,
      connectorNetworks,
      journal,
      journalId,
      keys,
      sandbox,
      secureContext,
      hostSecrets,
    });
  } catch (error) {
    await journal.close();
    throw error;
  }
}

/** Half of it is for results, of which a shell step has up to 0.4 MiB. With more steps than fit, some are declined. */
function journalBytes(maxInFlight: number): number {
  return Math.min(64, Math.max(8, maxInFlight)) * MEBIBYTE;
}
