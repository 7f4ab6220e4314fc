// Hours that pass in a moment, for everybody in a lab. A clock never goes back here, whichever recoveries came before.

import { fileURLToPath } from "node:url";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Lab } from "../lab/lab.ts";
import { API_PORT } from "../lab/network.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

const passed = new WeakMap<object, number>();

export function minutesPass({ clock }: Lab, minutes: number): void {
  if (!clock) throw new Error("this lab has no clock of its own");
  const total = (passed.get(clock) ?? 0) + minutes;
  passed.set(clock, total);
  clock.set(`+${total}m`);
}

/**
 * So many seconds pass, one after the other, also by the steady clock of the node's agent, which needs
 * `followsLapses`: whoever waits there for seconds has waited for them.
 */
export const lapse = (lab: Lab, seconds: number) => runLapse(lab, seconds);

/** At most the minute that an agent waits before it tries again, and a tenth of it. */
export const lapseUntilConnected = (lab: Lab) => runLapse(lab, 66, "until-connected");

/** For `agentEnv`. */
export const followsLapses = () => ({ FAKETIME_DONT_FAKE_MONOTONIC: "0" });

async function runLapse({ clock, node }: Lab, seconds: number, ...more: string[]): Promise<void> {
  if (!clock) throw new Error("this lab has no clock of its own");
  const file = clock.env["FAKETIME_TIMESTAMP_FILE"] ?? "";
  const from = Math.round((passed.get(clock) ?? 0) * 60);
  const args = [file, from, seconds, AGENT_PORT, API_PORT, ...more].map(String);
  const done = Number(await node.host.run(process.execPath, lapseProgram, ...args));
  passed.set(clock, (from + done) / 60);
}
const AGENT_PORT = 9000;
const lapseProgram = fileURLToPath(new URL("./lapse-process.ts", import.meta.url));

export const hoursPass = (lab: Lab, hours: number) => minutesPass(lab, hours * 60);

/** An hour passes while the node is connected: its certificate gets older, and its token is replaced. */
export async function anHourPasses(lab: Lab): Promise<void> {
  const tokenSeq = async () =>
    (await lab.control.operator(getNode, { params: { node_id: lab.node.id } })).recovery_token?.seq ?? 0;
  const has = (after: number) =>
    until("the node has another recovery token", PATIENCE_SECONDS, async () => {
      const seq = await tokenSeq();
      return seq > after && seq;
    });
  const before = await has(0);
  hoursPass(lab, 1);
  await has(before);
}
