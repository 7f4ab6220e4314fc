import { simulation } from "../executor.ts";
import { simulatedVms } from "../vms/simulated.ts";
import type contract from "./contract.ts";

export default simulation<typeof contract>((node) => ({
  async run({ params }) {
    return simulatedVms(node).removeImage(params.image);
  },
}));
