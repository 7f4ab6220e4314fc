import { expect, it } from "vitest";
import { createDialling } from "./dialling.ts";

it("AGENT-02 lets no more than so many connect at once, the others in their order, also after failures", async () => {
  const dialling = createDialling(3);
  const begun: number[] = [];
  const gates = Array.from({ length: 8 }, () => Promise.withResolvers<number>());
  const all = gates.map(({ promise }, index) =>
    dialling(() => {
      begun.push(index);
      return promise;
    }).catch(() => -1),
  );
  await expect.poll(() => begun).toEqual([0, 1, 2]);
  gates[1]?.reject(new Error("refused"));
  await expect.poll(() => begun).toEqual([0, 1, 2, 3]);
  for (const [index, gate] of gates.entries()) gate.resolve(index);
  expect(await Promise.all(all)).toEqual([0, -1, 2, 3, 4, 5, 6, 7]);
});
