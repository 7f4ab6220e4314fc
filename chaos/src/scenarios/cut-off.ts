// The story of a node that cannot work with the server: the user is refused, host and dashboard say why, and after the
// repair everything that was asked for is done.

import type { ExpectedSighting } from "../expectations.ts";
import type { Fault } from "../faults/fault.ts";
import type { Expected } from "../judge.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";

/** By what the server notices it first: heartbeats are missing, or the connection has ended. */
export type Silence = "heartbeat_stale" | "connection_lost";

/**
 * What everybody is given, when the agent knows the reason and nothing reaches the server, not even the end of a connection.
 * An agent with a stream does not respond to pings either; one that polls has no connection that is known to be lost.
 */
export function offline(
  reason: string,
  within: number,
  more: readonly ExpectedSighting[] = [],
): Required<Pick<Scenario, "expect" | "polling">> {
  const polling = silent("heartbeat_stale", reason, within, more);
  const before = { connection: "offline", attention: ["connection_lost"] };
  return { expect: { ...polling, before }, polling };
}

/** The same, when the agent's connection ends first. */
export function disconnected(reason: string, within: number): Pick<Scenario, "expect"> {
  return { expect: silent("connection_lost", reason, within) };
}

function silent(code: Silence, reason: string, within: number, more: readonly ExpectedSighting[] = []): Expected {
  return {
    rows: ["D01"],
    sightings: [
      { by: "host", code: reason, within },
      { by: "dashboard", code, within: 40 },
      { by: "user", code: "task_not_taken", within: 75 },
      ...more,
    ],
  };
}

export async function cutOff(
  story: Story,
  fault: Fault,
  reason: string,
  { silence = "heartbeat_stale", meanwhile }: { silence?: Silence; meanwhile?: () => Promise<void> } = {},
): Promise<void> {
  await story.breaks(fault);
  // Nothing is asked for before the agent has noticed: a poll that is held might still be answered.
  const [waiting] = await Promise.all([
    story.hostSees(reason).then(() => story.gives()),
    story.dashboardSees(silence),
    meanwhile?.(),
  ]);
  await story.userIsRefused();
  await story.repairs();
  await story.succeeds(waiting);
  await story.recovers();
}
