// A bench of this checkout beside the same bench of another one, such as a checkout of an earlier commit: the side that is
// ours in each, in turns, in processes of their own. What a change of ours costs or saves is measured this way.

import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bench, Measured } from "./bench.ts";
import type { Lab } from "./lab.ts";
import { root } from "./program.ts";
import type { OneSide } from "./programs/one-side.ts";

export function besideCheckout(bench: Bench, directory: string): Bench {
  const other = resolve(directory);
  const peer = `the same at ${commitOf(other)}`;
  return {
    ...bench,
    figures: bench.figures.map(({ name, unit, better }) => ({ name, unit, better, peer })),
    prepare: async (lab) => {
      const [ours, theirs] = [await startSide(lab, root, bench.name), await startSide(lab, other, bench.name)];
      return { ours: () => ask(ours), theirs: () => ask(theirs) };
    },
  };
}

function commitOf(directory: string): string {
  return execFileSync("git", ["-C", directory, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
}

async function startSide(lab: Lab, directory: string, bench: string): Promise<string> {
  const options: OneSide = { bench, directory: join(directory, "bench/src") };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("./programs/one-side.ts", import.meta.url))],
    env: { BENCH_OURS: JSON.stringify(options) },
  });
  return ((await program.ready) as { url: string }).url;
}

async function ask(url: string): Promise<Measured> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Measured;
}
