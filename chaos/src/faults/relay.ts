// Delay between the node and the api: a relay on the router that holds every byte back for a while. The kernels
// that tests run on have no `netem`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Lab } from "../lab/lab.ts";
import { API_PORT } from "../lab/network.ts";
import { type RunningProgram, start } from "../lab/program.ts";
import type { Fault } from "./fault.ts";
import { connectionsReset } from "./network.ts";

const program = fileURLToPath(new URL("./relay-process.ts", import.meta.url));

/** The name resolves to the relay while it runs; earlier connections are reset. */
export function delayed(lab: Lab, milliseconds: number): Fault {
  let relay: RunningProgram | undefined;
  const reset = connectionsReset(lab);
  return {
    what: `everything between node and api takes ${milliseconds} ms longer`,
    async inject() {
      const { control } = lab.network;
      relay = start({
        host: lab.router,
        name: "relay",
        command: [
          process.execPath,
          program,
          `${lab.node.gateway}:${API_PORT}`,
          `${control.address}:${API_PORT}`,
          String(milliseconds),
        ],
        logFile: join(lab.directory, "relay.log"),
      });
      await relay.ready;
      lab.names.answer(lab.node.gateway);
      await reset.inject();
    },
    async repair() {
      await reset.repair();
      lab.names.answer(lab.network.control.address);
      await relay?.stop("SIGKILL");
      relay = undefined;
    },
  };
}
