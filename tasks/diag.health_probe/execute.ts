import { executor } from "../executor.ts";
import contract from "./contract.ts";
import { probe } from "./probe.ts";

export default executor(contract, {
  async run({ progress, signal }) {
    return probe("/", (phase) => {
      signal.throwIfAborted();
      progress(phase);
    });
  },
});
