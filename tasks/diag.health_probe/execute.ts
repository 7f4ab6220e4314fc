import { executor } from "../executor.ts";
import type contract from "./contract.ts";
import { probe } from "./probe.ts";

export default executor<typeof contract>({
  async run({ progress, signal }) {
    return probe("/", (phase) => {
      signal.throwIfAborted();
      progress(phase);
    });
  },
});
