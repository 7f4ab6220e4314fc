// A node that waits for tasks over a stream, as the queue sees it: what it is offered, and when.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { systemActor } from "../src/audit/record.ts";
import type { TaskStream } from "../src/tasks/held-streams.ts";

let lab: TaskLab;
let replica: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  replica = await lab.newReplica();
});

type Waiting = { nodeId: string; stream: TaskStream; offered: string[]; setHeard(heard: boolean): void };

async function attach(): Promise<Waiting> {
  const nodeId = await lab.newNode();
  const offered: string[] = [];
  let heard = true;
  const stream = replica.engine.attach(nodeId, {
    instanceId: uuidv7(),
    send: (_offer, { tasks }) => offered.push(...tasks.map(({ task_id }) => task_id)),
    isHeard: () => heard,
    onSuperseded() {},
  });
  return {
    ...{ nodeId, stream, offered },
    setHeard: (now) => {
      heard = now;
    },
  };
}

const start = async (nodeId: string) =>
  (
    await replica.engine.start({
      ...{ nodeId, type: "test.repeat", params: {}, by: systemActor("test"), correlationId: uuidv7() },
    })
  ).id;
/** Resolves when the statements that were begun for the node before are done. */
const served = (nodeId: string) => replica.engine.renewLeases(nodeId, [{ task_id: uuidv7(), generation: 1 }]);
const full = { room: 32, holding: [], seen: 0 };

describe("tasks over a stream", () => {
  it("TASK-02 are claimed as they are created while the agent is known to be there", async () => {
    const { nodeId, stream, offered } = await attach();
    stream.capacity(full);
    const id = await start(nodeId);
    expect(offered).toEqual([id]);
    expect((await lab.row(id)).status).toBe("dispatched");
    stream.detach();
  });

  it.for(["enqueue", "start"] as const)(
    "TASK-02 wait for a sign of life of an agent that was silent: %s",
    async (by) => {
      const { nodeId, stream, offered, setHeard } = await attach();
      stream.capacity(full);
      await served(nodeId);
      setHeard(false);
      const id =
        by === "start" ? await start(nodeId) : (await lab.enqueue(replica, { nodeId, type: "test.repeat" })).id;
      await served(nodeId);
      expect((await lab.row(id)).status).toBe("queued");
      expect(offered).toEqual([]);
      setHeard(true);
      stream.heard();
      await expect.poll(() => offered).toEqual([id]);
      stream.detach();
    },
  );

  it("TASK-02 beyond the room wait in the queue, and come as soon as there is room", async () => {
    const { nodeId, stream, offered } = await attach();
    stream.capacity({ ...full, room: 1 });
    const first = await start(nodeId);
    const second = await start(nodeId);
    expect(offered).toEqual([first]);
    expect((await lab.row(second)).status).toBe("queued");
    await replica.engine.results(nodeId, [succeeded(first, 1, { done: true })]);
    stream.settled([first]);
    await expect.poll(() => offered).toEqual([first, second]);
    stream.detach();
  });
});
