// The server's name leads to a public edge, which terminates TLS: no certificate of a node gets through. Its listener has a
// certificate that nodes trust, as an edge that an operator configured with the files of an ingress. Otherwise agents would send
// nothing to it.

import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryAuthority } from "@holdfast/control-plane/identity/authority";
import type { Lab } from "../lab/lab.ts";
import { API_NAME, API_PORT } from "../lab/network.ts";
import { type RunningProgram, start } from "../lab/program.ts";
import { edgeOf } from "./edge.ts";
import type { Fault } from "./fault.ts";

const program = fileURLToPath(new URL("./public-edge-process.ts", import.meta.url));

/** From now on it presents a certificate of its own to the server. */
type PublicEdge = Fault & { presentsItsOwn(): Promise<void> };

/** Of a lab with an edge, which is where the name leads otherwise. */
export function nameLeadsToPublicEdge(lab: Lab): PublicEdge {
  const { control } = lab.network;
  const edge = edgeOf(lab);
  const directory = join(lab.directory, "public-edge");
  let running: RunningProgram | undefined;
  const restart = async () => {
    await running?.stop("SIGKILL");
    running = start({
      host: lab.router,
      name: "public edge",
      command: [
        ...[process.execPath, program, directory, API_NAME],
        ...[`${control.gateway}:${API_PORT}`, `${control.address}:${API_PORT}`],
      ],
      logFile: join(lab.directory, "public-edge.log"),
    });
    await running.ready;
  };
  return {
    what: "the server's name leads to a public edge",
    async inject() {
      mkdirSync(directory);
      for (const file of ["listener.pem", "trust.pem"]) {
        cpSync(join(lab.directory, "ingress", file), join(directory, file));
      }
      await restart();
      lab.names.answer(control.gateway);
      await edge.cuts();
    },
    async presentsItsOwn() {
      const { cert, key } = temporaryAuthority(new Date()).issueToServer(
        ["public-edge.holdfast.test"],
        new Date(),
      );
      writeFileSync(join(directory, "own.pem"), key + cert);
      await restart();
    },
    async repair() {
      lab.names.answer(lab.node.gateway);
      await running?.stop("SIGKILL");
      running = undefined;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
