import { setImmediate as turn } from "node:timers/promises";
import { ApiError } from "@holdfast/contracts/errors";
import { describe, expect, it } from "vitest";
import { ApiUnreachable } from "../api-link/client.ts";
import { createBatches } from "./batches.ts";

type Options = { items?: number; bytes?: number; atOnce?: number };

/** `respond` decides about each request; what it returns is the answer to all of its items. */
function rig(respond: (items: string[]) => Promise<string> | string, most: Options = {}) {
  const sent: string[][] = [];
  const outcomes: string[] = [];
  const batches = createBatches<string, string>({
    most: { items: 10, bytes: 100, atOnce: 1, ...most },
    keyOf: (item) => item.split("#")[0] ?? "",
    async send(items) {
      sent.push(items);
      const answer = await respond(items);
      return items.map(() => answer);
    },
  });
  const add = (item: string, { bytes = 1, until = Number.POSITIVE_INFINITY } = {}) =>
    batches.add({
      item,
      bytes,
      until,
      onAnswer: (answer, of) => outcomes.push(`${of} ${answer}`),
      onFailure: (error, of) => outcomes.push(`${of} ${error.name}`),
    });
  return { batches, sent, outcomes, add };
}

describe("batches", () => {
  it("EXEC-02 sends together what comes in a turn, and what comes while a request is under way", async () => {
    const gate = Promise.withResolvers<string>();
    const { batches, sent, outcomes, add } = rig(() => gate.promise);
    for (const item of ["a", "b"]) add(item);
    await turn();
    for (const item of ["c", "d"]) add(item);
    await turn();
    add("e");
    expect([sent, batches.waiting()]).toEqual([[["a", "b"]], 5]);
    gate.resolve("ok");
    await batches.flush(10_000);
    expect(sent).toEqual([
      ["a", "b"],
      ["c", "d", "e"],
    ]);
    expect(outcomes).toEqual(["a ok", "b ok", "c ok", "d ok", "e ok"]);
  });

  it("EXEC-02 respects the limits, and never has one key twice in a request", async () => {
    const { batches, sent, add } = rig(() => "ok", { items: 3 });
    for (const item of ["a", "b", "a#2", "c", "d", "e"]) add(item);
    add("large", { bytes: 1000 });
    add("f", { bytes: 60 });
    add("g", { bytes: 60 });
    await batches.flush(10_000);
    expect(sent).toEqual([["a", "b"], ["a#2", "c", "d"], ["e"], ["large"], ["f"], ["g"]]);
  });

  it("EXEC-04 repeats until there is a response, in order", async () => {
    let failures = 3;
    const { batches, sent, outcomes, add } = rig(() => {
      failures -= 1;
      if (failures === 2) throw new ApiUnreachable("down");
      if (failures >= 0) throw new ApiError("service_identity_refused");
      return "ok";
    });
    add("a");
    await turn();
    add("b");
    await batches.flush(100_000);
    expect(sent.map((items) => items.join())).toEqual(["a", "a", "a", "a", "b"]);
    expect(outcomes).toEqual(["a ok", "b ok"]);
  });

  it("EXEC-04 one that the api refuses does not take others with it", async () => {
    const { batches, outcomes, add } = rig((items) => {
      if (items.includes("bad")) throw new ApiError("invalid_request");
      return "ok";
    });
    for (const item of ["a", "bad", "b"]) add(item);
    await batches.flush(10_000);
    expect(outcomes).toEqual(["a ok", "bad ApiError", "b ok"]);
  });

  it("EXEC-05 gives up what has no more time, and only that", async () => {
    let isDown = true;
    const { batches, outcomes, add } = rig(() => {
      if (isDown) throw new ApiError("shutting_down");
      return "ok";
    });
    add("hasty", { until: Date.now() });
    add("patient");
    await expect.poll(() => outcomes).toEqual(["hasty ApiUnreachable"]);
    isDown = false;
    await batches.flush(100_000);
    expect(outcomes).toEqual(["hasty ApiUnreachable", "patient ok"]);
  });

  it("EXEC-05 fails what is left when it is stopped", async () => {
    const { batches, outcomes, add } = rig(() => {
      throw new ApiUnreachable("down");
    });
    add("under way");
    await turn();
    add("waiting");
    batches.stop();
    add("late");
    await expect.poll(() => outcomes.length).toBe(3);
    expect([outcomes.toSorted(), batches.waiting()]).toEqual([
      ["late ApiUnreachable", "under way ApiUnreachable", "waiting ApiUnreachable"],
      0,
    ]);
  });
});
