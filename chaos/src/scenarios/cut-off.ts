// The story of a node that cannot work with the server: the user is refused, host and dashboard say why, and after the
// repair everything that was asked for is done.

import type { Fault } from "../faults/fault.ts";
import type { Expected } from "../judge.ts";
import type { Story } from "../story.ts";

/** What everybody gets when the agent knows the reason and the server only misses its heartbeats. */
export function offline(reason: string, within: number): Expected {
  return {
    sightings: [
      { by: "host", code: reason, within },
      { by: "dashboard", code: "heartbeat_stale", within: 40 },
      { by: "user", code: "task_not_taken", within: 75 },
    ],
  };
}

export async function cutOff(
  story: Story,
  fault: Fault,
  reason: string,
  meanwhile: () => Promise<void> = async () => undefined,
): Promise<void> {
  await story.breaks(fault);
  // Nothing is asked for before the agent has noticed: a poll that is held might still be answered.
  const [waiting] = await Promise.all([
    story.hostSees(reason).then(() => story.gives()),
    story.dashboardSees("heartbeat_stale"),
    meanwhile(),
  ]);
  await story.userIsRefused();
  await story.mends();
  await story.succeeds(waiting);
  await story.recovers();
}
