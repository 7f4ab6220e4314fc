// What operators do in several recoveries.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Fault } from "../faults/fault.ts";
import { holdfast } from "../lab/command.ts";
import type { Lab } from "../lab/lab.ts";
import { type RunningProgram, start } from "../lab/program.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import type { RecoveryStory } from "./story.ts";

export type Written = { id: string; file: string; line: string; root_sha256: string };

/** A recovery bundle for the node, in a file at the desk. */
export function createBundle({ desk, lab }: RecoveryStory, ...options: string[]): Promise<Written> {
  return desk<Written>(
    "node",
    "bundle",
    "create",
    lab.node.name,
    "--out",
    join(lab.directory, "bundles"),
    ...options,
  );
}

type Token = { token: string; api_url: string };

/** The host enrolls again as the same node. */
export async function joinAgain({ lab }: RecoveryStory, { token, api_url }: Token): Promise<void> {
  await lab.node.holdfast(["join", "--api", api_url], { HOLDFAST_ENROLLMENT_TOKEN: token });
}

/** Until the node has shown a recovery token. */
export async function hasRecoveryToken({ control, node }: Lab): Promise<void> {
  await until("the node has a recovery token", PATIENCE_SECONDS, async () => {
    const { recovery_token } = await control.operator(getNode, { params: { node_id: node.id } });
    return (recovery_token?.seq ?? 0) > 0;
  });
}

/**
 * The host is off until the server has noticed, unless it knows of a problem already, and comes back without its key and with whatever else was done to it. Sooner, a
 * node with a token would be back before anybody knew.
 */
export async function comesBackWithoutKey(
  story: RecoveryStory,
  more: Fault = { what: "", inject, repair: inject },
) {
  const { lab } = story;
  await hasRecoveryToken(lab);
  await story.breaks({ what: "the host is off", inject: () => lab.node.agent().stop(), repair: inject });
  if (story.isQuiet()) await story.isClassified("agent_down");
  await story.breaks({
    what: `the host comes back without its key; ${more.what}`,
    async inject() {
      await deleteKey(lab);
      await more.inject();
      lab.node.startAgent();
    },
    repair: more.repair,
  });
}

async function inject(): Promise<void> {}

/** On the host itself, which may have file systems that only it sees. */
const deleteKey = ({ node }: Lab) => node.host.run("rm", join(node.stateDir, "identity.pem"));

/** A copy of the agent's state as it is now, without what belongs to the process. */
export function copyState({ node, directory }: Lab, name: string): string {
  const copy = join(directory, name);
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { mode: 0o700 });
  cpSync(node.stateDir, copy, { recursive: true, filter: (path) => !/lock|[.]sock$/.test(path) });
  return copy;
}

/** An agent with its state in this directory, on another host of the lab. */
export function startElsewhere(lab: Lab, stateDir: string, env: Record<string, string> = {}): RunningProgram {
  const elsewhere = lab.network.nodes.find(({ host }) => host.name !== lab.node.name);
  if (!elsewhere) throw new Error("this lab has no other host");
  return start({
    host: elsewhere.host,
    name: "agent elsewhere",
    command: [process.execPath, holdfast, "agent", "run"],
    env: {
      ...{
        HOLDFAST_AGENT_STATE_DIR: stateDir,
        HOLDFAST_AGENT_PORT: "9001",
        HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2",
      },
      ...{ HOLDFAST_NODE_DISK_PRESSURE_PERCENT: "99", HOLDFAST_AGENT_LOG_LEVEL: "debug" },
      ...lab.clock?.env,
      ...env,
    },
    logFile: join(lab.directory, "agent-elsewhere.log"),
  });
}
