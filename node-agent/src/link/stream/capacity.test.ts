import { BATCH } from "@holdfast/contracts/node/limits";
import type { Held } from "@holdfast/contracts/node/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createHeldStream } from "../../../../control-plane/src/tasks/held-streams.ts";
import { afterOffer, afterVerdicts, correction, declared, undeclared } from "./capacity.ts";

const held = (id: string): Held => ({ task_id: id, generation: 1 });
const full = { room: BATCH, holding: [] };

describe("what the server believes of an agent", () => {
  it("TASK-02 is declared at first, and not again while it follows from what was sent", () => {
    const first = correction(undeclared, full);
    expect(first).toEqual({ room: BATCH, holding: [], seen: 0 });
    const known = declared({ room: BATCH, holding: [], seen: 0 });
    expect(correction(known, full)).toBeUndefined();
    const offered = afterOffer(known, 1, ["a"]);
    expect(correction(offered, { room: BATCH, holding: [held("a")] })).toBeUndefined();
    expect(correction(afterVerdicts(offered, ["a"]), full)).toBeUndefined();
  });

  it("TASK-02 is corrected when there is less room, when it is far too little, and when something else is held", () => {
    const known = declared({ room: BATCH, holding: [], seen: 0 });
    expect(correction(known, { room: 3, holding: [] })).toEqual({ room: 3, holding: [], seen: 0 });
    expect(correction(known, { room: BATCH, holding: [held("x")] })).toMatchObject({ holding: [held("x")] });
    const many = Array.from({ length: BATCH / 2 + 1 }, (_, index) => `t${index}`);
    const busy = afterOffer(known, 7, many);
    expect(correction(busy, { room: BATCH, holding: many.map(held) })).toMatchObject({ room: BATCH, seen: 7 });
  });

  const step = fc.oneof(
    fc.record({ do: fc.constant("offer" as const), tasks: fc.integer({ min: 1, max: 5 }) }),
    fc.constant({ do: "deliver" as const }),
    fc.constant({ do: "report" as const }),
    fc.record({ do: fc.constant("declare" as const), room: fc.integer({ min: 0, max: BATCH }) }),
    fc.constant({ do: "receive" as const }),
  );

  it("TASK-02 is the same on both sides whenever nothing is under way, however frames cross each other", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let ids = 0;
        let agent = undeclared;
        const holding = new Set<string>();
        /** Frames under way, in order. */
        const toAgent: ({ offer: number; ids: string[] } | { verdicts: string[] })[] = [];
        const toServer: ({ capacity: NonNullable<ReturnType<typeof correction>> } | { results: string[] })[] = [];
        const server = createHeldStream(
          "node",
          {
            instanceId: "instance",
            send: (offer, { tasks }) => toAgent.push({ offer, ids: tasks.map(({ task_id }) => task_id) }),
            onSuperseded() {},
          },
          () => undefined,
        );
        const offer = (count: number) => {
          const tasks = Array.from({ length: Math.min(count, server.asking.room) }, () => {
            ids += 1;
            return { task_id: `t${ids}`, generation: 1 };
          });
          if (tasks.length > 0) server.respond({ tasks: tasks as never, cancel: [] });
        };
        const declare = (room: number) => {
          // As the agent does: not while a verdict may be under way.
          if (toServer.some((frame) => "results" in frame) || toAgent.some((frame) => "verdicts" in frame)) return;
          const correct = correction(agent, { room, holding: [...holding].map(held) });
          if (!correct) return;
          agent = declared(correct);
          toServer.push({ capacity: correct });
        };
        const deliver = () => {
          const frame = toServer.shift();
          if (!frame) return;
          if ("capacity" in frame) server.capacity(frame.capacity);
          else {
            toAgent.push({ verdicts: frame.results });
            server.settled(frame.results);
          }
        };
        const receive = () => {
          const frame = toAgent.shift();
          if (!frame) return;
          if ("verdicts" in frame) {
            agent = afterVerdicts(agent, frame.verdicts);
            for (const id of frame.verdicts) holding.delete(id);
          } else {
            agent = afterOffer(agent, frame.offer, frame.ids);
            for (const id of frame.ids) holding.add(id);
          }
        };
        const reported = new Set<string>();
        const report = () => {
          const [id] = [...holding].filter((one) => !reported.has(one));
          if (id === undefined) return;
          reported.add(id);
          toServer.push({ results: [id] });
        };
        declare(BATCH);
        for (const one of steps) {
          if (one.do === "offer") offer(one.tasks);
          else if (one.do === "deliver") deliver();
          else if (one.do === "report") report();
          else if (one.do === "declare") declare(one.room);
          else receive();
        }
        while (toServer.length + toAgent.length > 0) {
          deliver();
          receive();
        }
        const believed = new Set(server.asking.holding.map(({ task_id }) => task_id));
        expect(believed).toEqual(holding);
        expect(agent.holding).toEqual(holding);
        expect(server.asking.room).toBe(agent.room);
      }),
    );
  });
});
