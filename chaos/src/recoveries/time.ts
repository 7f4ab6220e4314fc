// Hours that pass in a moment, for everybody in a lab. A clock never goes back here, whichever recoveries came before.

import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Lab } from "../lab/lab.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

const passed = new WeakMap<object, number>();

export function minutesPass({ clock }: Lab, minutes: number): void {
  if (!clock) throw new Error("this lab has no clock of its own");
  const total = (passed.get(clock) ?? 0) + minutes;
  passed.set(clock, total);
  clock.set(`+${total}m`);
}

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
