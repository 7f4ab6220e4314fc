import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  benign,
  cloned,
  newHost,
  newProcess,
  type Random,
  serverInMemory,
} from "../../../test/support/holders.ts";
import { addContact, noLineage } from "./lineage.ts";

/** The same rounds for the same seed. */
function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function world(seed: number) {
  const random = seeded(seed);
  let now = 0;
  const server = serverInMemory(() => {
    now += random() * 20_000;
    return now;
  });
  const process = newProcess(newHost());
  await process.beat(server);
  return { random, server, replica: server, process };
}

describe("who uses a node's identity", () => {
  it.for(Object.entries(benign))("ID-10 no proof of two holders: %s, 200 rounds in a row", async ([, churn]) => {
    const { process, ...round } = await world(7);
    let running = process;
    for (let turn = 0; turn < 200; turn += 1) {
      running = await churn(round, running);
      expect(round.server.proofs(), `round ${turn}`).toBe(0);
    }
  });

  it("ID-10 no proof of two holders, whatever happens to one host in whichever order", async () => {
    const kinds = Object.keys(benign);
    const rounds = fc.array(fc.constantFrom(...kinds), { minLength: 2, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(fc.nat(), rounds, async (seed, course) => {
        const { process, ...round } = await world(seed);
        let running = process;
        for (const kind of course) running = (await benign[kind]?.(round, running)) ?? running;
        expect(round.server.proofs()).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it.for(Object.entries(cloned))(
    "ID-10 two holders are proved within a few heartbeats: %s",
    async ([, cloning]) => {
      const earlier = fc.array(fc.constantFrom(...Object.keys(benign)), { maxLength: 5 });
      await fc.assert(
        fc.asyncProperty(fc.nat(), earlier, async (seed, before) => {
          const { process, ...round } = await world(seed);
          let original = process;
          for (const kind of before) original = (await benign[kind]?.(round, original)) ?? original;
          const copy = await cloning(original, round);
          // Whoever polls is asked for the next one within seconds; whoever has a stream, at once.
          for (const one of [copy, original, copy, original, copy, original]) await one.beat(round.server);
          const proofs = round.server.proofs();
          expect(proofs).toBeGreaterThan(0);
          for (const one of [copy, original, copy, original]) await one.beat(round.server);
          const last = round.server.proofs();
          expect(last, "both still run").toBeGreaterThan(proofs);
          for (let turn = 0; turn < 9; turn += 1) await original.beat(round.server);
          expect(round.server.proofs(), "one is gone").toBe(last);
        }),
        { numRuns: 200 },
      );
    },
  );

  it("ID-10 two that take turns with minutes between them are no proof: snapshots that were restored one after the other", async () => {
    let now = 0;
    const server = serverInMemory(() => now);
    const [one, other] = [newProcess(newHost()), newProcess(newHost())];
    for (let turn = 0; turn < 10; turn += 1) {
      now += 6 * 60_000;
      await (turn % 2 === 0 ? one : other).beat(server);
    }
    expect(server.proofs()).toBe(0);
  });

  it("ID-10 asks for another heartbeat when two were sent in place of one, or a holder whose end was not noticed is followed by another", async () => {
    const sent = async (...steps: ("one" | "copy" | "next" | "close")[]) => {
      const server = serverInMemory(() => 0);
      const one = newProcess(newHost());
      for (let turn = 0; turn < 3; turn += 1) await one.beat(server);
      const all = { one: one.prepare(), copy: one.copy().prepare(), next: newProcess(newHost()).prepare() };
      let again = false;
      for (const step of steps) {
        if (step === "close") await server.disconnected();
        else ({ again } = await server.heartbeat(all[step]));
      }
      return again;
    };
    expect(await sent("one")).toBe(false);
    expect(await sent("one", "copy")).toBe(true);
    expect(await sent("one", "next")).toBe(true);
    expect(await sent("one", "close", "next")).toBe(false);
  });

  it("ID-10 first heartbeats of two processes, which follow no answer, are of two holders", () => {
    const machine = { bootId: "b", serial: null, address: null, hostname: null, startedAt: null };
    const previous = { ...machine, instanceId: "a", number: 1, after: 0, at: 0, disconnected: false };
    const contact = { ...machine, instanceId: "b", number: 2, after: 0, at: 0, previous };
    expect(addContact(noLineage, contact).holders.map(({ id, instanceId }) => [id, instanceId])).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
  });
});
