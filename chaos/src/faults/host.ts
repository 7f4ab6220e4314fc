// Faults of a host: its disk, its clock, its files, its agent.

import { copyFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clockEnvironment } from "@holdfast/control-plane/database/embedded/testing/world-clock";
import type { LabNode } from "../lab/node.ts";
import type { Fault } from "./fault.ts";

export const agentStopped = (node: LabNode): Fault => ({
  what: "the agent's service is stopped",
  inject: () => node.stopAgent(),
  repair: async () => node.startAgent(),
});

/** Of a node that keeps its state on a file system of its own. */
export function diskFull(node: LabNode): Fault {
  const filler = join(node.stateDir, "filler");
  return {
    what: "the file system of the agent's state is full",
    async inject() {
      // Until there is no more room, which is where it ends with a complaint.
      await node.host.run("sh", "-c", 'cat /dev/zero > "$1" 2>/dev/null; true', "sh", filler);
    },
    repair: async () => void (await node.host.run("rm", "-f", filler)),
  };
}

/** The clock of one host alone, for `agentEnv`; `clockOff` moves it. */
export function movableClock(directory: string): Record<string, string> {
  writeFileSync(clockFile(directory), "+0\n");
  return clockEnvironment(clockFile(directory));
}
const clockFile = (directory: string) => join(directory, "clock");

export const clockOff = (directory: string, offset: string): Fault => ({
  what: `the host's clock is ${offset} off`,
  inject: async () => writeFileSync(clockFile(directory), `${offset}\n`),
  repair: async () => writeFileSync(clockFile(directory), "+0\n"),
});

/** The agent is restarted with it: one that runs has the right one in memory. */
export function trustReplaced(node: LabNode, staleBundle: string): Fault {
  const file = join(node.stateDir, "trust.pem");
  const kept = `${file}.kept`;
  return {
    what: "the bundle with the server's CA is an old one",
    async inject() {
      // Stopped first: one that runs would report it with its next heartbeat.
      await node.stopAgent();
      copyFileSync(file, kept);
      writeFileSync(file, staleBundle);
      node.startAgent();
    },
    // As an operator restores a file: in one step, beside the running agent.
    repair: async () => renameSync(kept, file),
  };
}

/** As when the host loses power: nothing is said to anybody. */
export const agentKilled = (node: LabNode): Fault => ({
  what: "the agent is killed -9",
  inject: () => node.agent().stop("SIGKILL"),
  repair: async () => node.startAgent(),
});

/** A variable in the host's env file names a server of another environment. */
export function addressOfAnotherProfile(node: LabNode): Fault {
  return {
    what: "the agent is restarted with the address of another environment",
    async inject() {
      await node.stopAgent();
      node.startAgent({ env: { HOLDFAST_NODE_API_URL: "https://staging.holdfast.test:18442" } });
    },
    async repair() {
      await node.agent().stop();
      node.startAgent();
    },
  };
}

/** As an operator does it, with this set beyond the usual; until the api has heard from it. */
export async function agentRestarted(node: LabNode, env: Record<string, string> = {}): Promise<void> {
  await node.agent().stop();
  node.startAgent({ env });
  await node.agent().line(({ msg }) => msg === "heartbeat accepted", 0);
}

/** The host gets another address on the same network, and the connections from the old one end. */
export function addressChanged(node: LabNode): Fault {
  const { address, gateway, host } = node;
  const other = address.replace(/[.]\d+$/, ".77");
  const change = (from: string, to: string) =>
    host.ip(
      `addr del ${from}/24 dev cable`,
      `addr add ${to}/24 dev cable`,
      `route replace default via ${gateway} src ${to}`,
    );
  return {
    what: `the host's address changes from ${address} to ${other}`,
    inject: () => change(address, other),
    repair: () => change(other, address),
  };
}
