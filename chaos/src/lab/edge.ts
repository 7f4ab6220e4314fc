// An edge in front of the api, as an installation has one: it ends the nodes' TLS and hands their certificates over.
// It can be set to answer in the api's place, or to lose an answer at a chosen moment.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { enrollIngress } from "./ingress.ts";
import { API_NAME, API_PORT, type Network } from "./network.ts";
import { type RunningProgram, start } from "./program.ts";

const program = fileURLToPath(new URL("./edge-process.ts", import.meta.url));

/** About requests whose path ends so; of two, the later counts. `close`: the connection ends with the answer. */
export type EdgeRule = { path: string } & (
  | { do: "answer"; status: number; page: string; close?: boolean }
  /** Does not pass the request on, nor answer it. */
  | { do: "keep_request" }
  /** Passes the request on and keeps what the api says, if there is this in it. */
  | { do: "keep_answer"; with?: string }
);

export type Edge = {
  program: RunningProgram;
  follows(rules: EdgeRule[]): Promise<void>;
  /** When something is kept that was not before. */
  keeps(after: number): Promise<void>;
  /** Closes every connection of nodes, as when it is restarted. */
  cuts(): Promise<void>;
  /** Its listener presents this certificate and key from now on; undefined: its own again. */
  presents(pem: string | undefined): Promise<void>;
  /** Follows no rules any more; who waits for what was kept is cut off. */
  relents(): Promise<void>;
};

/** On the router, where nodes find it by the api's name. */
export async function openEdge(options: {
  network: Network;
  directory: string;
  ingressToken: string;
  listen: string;
}): Promise<Edge> {
  const { network, directory } = options;
  const certificates = await enrollIngress(options);
  const edge = start({
    host: network.router,
    name: "edge",
    command: [
      ...[process.execPath, program, certificates, API_NAME],
      ...[`${options.listen}:${API_PORT}`, `${network.control.address}:${API_PORT}`],
    ],
    logFile: join(directory, "edge.log"),
  });
  await edge.ready;
  let orders = 0;
  let followed: EdgeRule[] = [];
  const order = async (rules: EdgeRule[], more: { relent?: boolean; cut?: boolean; pem?: string | null } = {}) => {
    followed = rules;
    orders += 1;
    const number = orders;
    edge.send({ relent: false, cut: false, ...more, number, rules });
    await edge.line((line) => line["received"] === number, 0);
  };
  return {
    program: edge,
    follows: (rules) => order(rules),
    cuts: () => order(followed, { cut: true }),
    presents: (pem) => order(followed, { pem: pem ?? null, cut: true }),
    keeps: async (after) => void (await edge.line((line) => line["kept"] !== undefined, after)),
    relents: () => order([], { relent: true }),
  };
}
