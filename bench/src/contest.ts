// Runs both sides and the floor in turns, so that whatever else the machine does meanwhile meets all of them.

import type { Contest, Measured } from "./bench.ts";

export type Pass = { ours: Measured; theirs: Measured; floor?: Measured };
type Side = keyof Pass;

export async function runPasses(
  contest: Contest,
  options: { passes: number; onMeasured(pass: string, side: Side, values: Measured): void },
): Promise<Pass[]> {
  const { passes, onMeasured } = options;
  const sides: [Side, () => Promise<Measured>][] = [
    ["ours", () => contest.ours()],
    ["theirs", () => contest.theirs()],
  ];
  const { floor } = contest;
  if (floor) sides.push(["floor", floor]);
  const measure = async (label: string, inTurn: typeof sides): Promise<Pass> => {
    const values: Partial<Pass> = {};
    for (const [side, run] of inTurn) {
      const measured = await run();
      values[side] = measured;
      onMeasured(label, side, measured);
    }
    return values as Pass;
  };
  await measure("warm-up", sides);
  const measured: Pass[] = [];
  for (let index = 0; index < passes; index += 1) {
    // Turned around every time: no side always follows another.
    const inTurn = index % 2 === 0 ? sides : sides.toReversed();
    measured.push(await measure(`pass ${index + 1} of ${passes}`, inTurn));
  }
  return measured;
}
