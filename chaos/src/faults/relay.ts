// Delay between the node and the api: a relay on the router that holds every byte back for a while. The kernels
// that tests run on have no `netem`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Lab } from "../lab/lab.ts";
import { API_PORT, TERMINAL_PORT } from "../lab/network.ts";
import { type RunningProgram, start } from "../lab/program.ts";
import type { Fault } from "./fault.ts";
import { connectionsReset } from "./network.ts";

const program = fileURLToPath(new URL("./relay-process.ts", import.meta.url));

/** On the router, on the address that the node has for it. */
async function startRelay(lab: Lab, port: number, milliseconds: number): Promise<RunningProgram> {
  const [listen, target] = [`${lab.node.gateway}:${port}`, `${lab.network.control.address}:${port}`];
  const relay = start({
    ...{ host: lab.router, name: "relay", logFile: join(lab.directory, "relay.log") },
    command: [process.execPath, program, listen, target, String(milliseconds)],
  });
  await relay.ready;
  return relay;
}

/** The name resolves to the relay while it runs; earlier connections are reset. */
export function delayed(lab: Lab, milliseconds: number): Fault {
  let relay: RunningProgram | undefined;
  const reset = connectionsReset(lab);
  return {
    what: `everything between node and api takes ${milliseconds} ms longer`,
    async inject() {
      relay = await startRelay(lab, API_PORT, milliseconds);
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

/** The same of the terminal gateway, which agents connect to anew for each terminal. */
export function nodeTerminalDelayed(lab: Lab, milliseconds: number): Fault {
  let relay: RunningProgram | undefined;
  return {
    what: `everything between node and gateway takes ${milliseconds} ms longer`,
    async inject() {
      relay = await startRelay(lab, TERMINAL_PORT, milliseconds);
      lab.names.answerTerminal(lab.node.gateway);
    },
    async repair() {
      lab.names.answerTerminal(lab.network.control.address);
      await relay?.stop("SIGKILL");
      relay = undefined;
    },
  };
}
