import { setTimeout as sleep } from "node:timers/promises";
import { executor } from "../executor.ts";
import type contract from "./contract.ts";

const STEPS = 10;

export default executor<typeof contract>({
  async run({ params, progress, signal }) {
    for (let step = 0; params.hold_ms > 0 && step < STEPS; step += 1) {
      progress("holding", { percent: (step / STEPS) * 100 });
      await sleep(params.hold_ms / STEPS, undefined, { signal });
    }
    return { echo: params.echo ?? null };
  },
});
