// Runs both sides in turns, so that whatever else the machine does meanwhile meets both of them.

import type { Contest, Measured } from "./bench.ts";

export type Pass = { ours: Measured; theirs: Measured };

export async function runPasses(
  contest: Contest,
  options: { passes: number; onMeasured(pass: string, side: keyof Pass, values: Measured): void },
): Promise<Pass[]> {
  const { passes, onMeasured } = options;
  const measure = async (label: string, first: keyof Pass): Promise<Pass> => {
    const values: Partial<Pass> = {};
    for (const side of first === "ours" ? (["ours", "theirs"] as const) : (["theirs", "ours"] as const)) {
      values[side] = await contest[side]();
      onMeasured(label, side, values[side]);
    }
    return values as Pass;
  };
  await measure("warm-up", "ours");
  const measured: Pass[] = [];
  for (let index = 0; index < passes; index += 1) {
    // Turned around every time: neither side always follows the other.
    measured.push(await measure(`pass ${index + 1} of ${passes}`, index % 2 === 0 ? "ours" : "theirs"));
  }
  return measured;
}
