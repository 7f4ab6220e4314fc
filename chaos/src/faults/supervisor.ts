// A service manager that starts the agent again whenever it ends, and is kept from it.

import { fileURLToPath } from "node:url";
import type { LabNode } from "../lab/node.ts";
import type { Line } from "../lab/program.ts";
import { PATIENCE_SECONDS, until, within } from "../until.ts";
import type { Fault } from "./fault.ts";

const program = fileURLToPath(new URL("./supervisor-process.ts", import.meta.url));

/** As the service manager printed them. */
export const serviceLines = (node: LabNode): Line[] =>
  node
    .agent()
    .lines()
    .filter(({ msg }) => msg === "service");

/** `prepare` puts the agent under a service manager, and shows that this one restarts it. */
export function restartBlocked(node: LabNode): Fault & { prepare(): Promise<void> } {
  const pidOf = () => serviceLines(node).findLast(({ state }) => state === "active")?.["pid"] as number;
  const isConnected = (after: number) =>
    within("the agent is connected", PATIENCE_SECONDS, node.agent().line(isHeartbeat, after));
  const order = async (mayRestart: boolean) => {
    const at = Date.now();
    node.agent().send({ mayRestart });
    await node.agent().line((line) => line["may_restart"] === mayRestart, at);
  };
  let isBlocked = false;
  return {
    what: "the agent is killed, and its service manager may not restart it",
    async prepare() {
      await node.agent().stop();
      node.startAgent({ command: program });
      await isConnected(0);
      const first = pidOf();
      process.kill(first, "SIGKILL");
      await until("the service manager restarts the agent", PATIENCE_SECONDS, async () => pidOf() !== first);
      await isConnected(Date.now());
    },
    async inject() {
      isBlocked = true;
      await order(false);
      process.kill(pidOf(), "SIGKILL");
      const failed = node.agent().line(({ state }) => state === "failed", 0);
      await within("the service has failed", PATIENCE_SECONDS, failed);
    },
    async repair() {
      if (isBlocked) await order(true);
      isBlocked = false;
    },
  };
}

const isHeartbeat = ({ msg }: Line) => msg === "heartbeat accepted";
