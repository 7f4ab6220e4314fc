// What the server believes that this agent holds and would take. Both sides derive it in the same way from what they have
// sent each other: an offered task lowers the room and is held until there is a verdict on its result. The agent declares
// it again only when that is not true, or too far off to matter.

import { BATCH } from "@holdfast/contracts/node/limits";
import type { Held } from "@holdfast/contracts/node/protocol";
import type { CapacityFrame } from "@holdfast/contracts/node/stream";

export type Capacity = {
  /** Undefined: nothing was declared yet. */
  room: number | undefined;
  holding: ReadonlySet<string>;
  /** The number of the last offer. */
  seen: number;
};

export const undeclared: Capacity = { room: undefined, holding: new Set(), seen: 0 };

export function afterOffer(capacity: Capacity, offer: number, taskIds: readonly string[]): Capacity {
  const fresh = taskIds.filter((id) => !capacity.holding.has(id));
  return {
    room: capacity.room === undefined ? undefined : Math.max(0, capacity.room - fresh.length),
    holding: new Set([...capacity.holding, ...fresh]),
    seen: offer,
  };
}

export function afterVerdicts(capacity: Capacity, taskIds: readonly string[]): Capacity {
  const holding = new Set(capacity.holding);
  for (const id of taskIds) holding.delete(id);
  const freed = capacity.holding.size - holding.size;
  return { ...capacity, room: capacity.room === undefined ? undefined : capacity.room + freed, holding };
}

/** Less room than this is corrected as soon as there is more. */
const TOO_LITTLE = BATCH / 2;

/** The frame to send, if what the server believes has to be corrected. */
export function correction(
  capacity: Capacity,
  actual: { room: number; holding: readonly Held[] },
): CapacityFrame["capacity"] | undefined {
  const { room, holding, seen } = capacity;
  const isSame =
    room !== undefined &&
    actual.room >= room &&
    (room >= TOO_LITTLE || actual.room === room) &&
    actual.holding.length === holding.size &&
    actual.holding.every(({ task_id }) => holding.has(task_id));
  return isSame ? undefined : { room: actual.room, holding: [...actual.holding], seen };
}

export function declared({ room, holding, seen }: CapacityFrame["capacity"]): Capacity {
  return { room, holding: new Set(holding.map(({ task_id }) => task_id)), seen };
}
