import { describe, expect, it } from "vitest";
import { createHeldStream } from "./held-streams.ts";

function openStream() {
  const sent: string[][] = [];
  let served = 0;
  const stream = createHeldStream(
    "node",
    {
      instanceId: "instance",
      send: (_offer, { tasks }) => sent.push(tasks.map(({ task_id }) => task_id)),
      onSuperseded() {},
    },
    () => {
      served += 1;
    },
  );
  const offer = (...ids: string[]) => {
    const tasks = ids.map((task_id) => ({ task_id, generation: 1 }));
    stream.respond({ tasks: tasks as never, cancel: [] });
  };
  return { stream, sent, offer, served: () => served };
}

describe("a stream in the queue", () => {
  it("TASK-02 is served again when there is room after there was none, and not while there was some", () => {
    const { stream, offer, served } = openStream();
    stream.capacity({ room: 2, holding: [], seen: 0 });
    offer("a");
    stream.settled(["a"]);
    expect(served()).toBe(1);
    offer("b", "c");
    stream.settled(["b"]);
    expect(served()).toBe(2);
  });

  it("TASK-02 offers what is held only once, and counts what crossed a declaration as held", () => {
    const { stream, sent, offer } = openStream();
    stream.capacity({ room: 8, holding: [], seen: 0 });
    offer("a");
    offer("a", "b");
    expect(sent).toEqual([["a"], ["b"]]);
    // The agent has seen the first offer; the second is under way.
    stream.capacity({ room: 7, holding: [{ task_id: "a", generation: 1 }], seen: 1 });
    expect(stream.asking).toMatchObject({ room: 6, holding: [{ task_id: "a" }, { task_id: "b" }] });
  });

  it("keeps nothing of a task that has ended, however many declarations an agent spares itself", () => {
    const { stream, offer } = openStream();
    stream.capacity({ room: 8, holding: [], seen: 0 });
    offer("a", "b");
    offer("c");
    stream.settled(["a"]);
    stream.settled(["c"]);
    // Whatever is remembered of these offers counts as under way here.
    stream.capacity({ room: 8, holding: [], seen: 0 });
    expect(stream.asking).toMatchObject({ room: 7, holding: [{ task_id: "b" }] });
  });
});
