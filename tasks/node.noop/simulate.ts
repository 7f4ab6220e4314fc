// It touches no host: a simulated node does the same.

import { simulation } from "../executor.ts";
import type contract from "./contract.ts";
import execute from "./execute.ts";

export default simulation<typeof contract>(() => execute);
