// A lab: hosts with real processes on them, for one scenario. All of it lives in the namespaces that `enter.ts`
// made for the run, so a run that is killed takes it along; closing it leaves room for the next.

import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { openWorldClock, type WorldClock } from "@holdfast/control-plane/database/embedded/testing/world-clock";
import type { Logins } from "@holdfast/control-plane/database/settings";
import { type Control, openControl } from "./control.ts";
import { type Backups, type OwnDatabase, openOwnDatabase, type SharedDatabase } from "./database.ts";
import { type NameServer, openNameServer } from "./dns.ts";
import { type Edge, openEdge } from "./edge.ts";
import { allocate, type Gateway, openGateway, planGateway, withUsers } from "./gateway.ts";
import type { Host } from "./host.ts";
import { type Network, openNetwork } from "./network.ts";
import { type Nginx, openNginx, throughNginx } from "./nginx.ts";
import { type LabNode, openNode } from "./node.ts";
import type { RunningProgram } from "./program.ts";
import { openSsh } from "./ssh.ts";

export type LabOptions = {
  /** With a second node, which nothing should happen to. */
  second?: boolean;
  /** A PostgreSQL of its own, which may be harmed. */
  ownDatabase?: boolean;
  /** With a clock of its own, which all processes of the lab see. */
  clock?: boolean;
  /** With an edge between nodes and api, which can be set to misbehave. */
  edge?: boolean;
  /** With a real nginx between nodes and api, which verifies certificates itself. */
  nginx?: boolean;
  /** With a gateway, a user on the node for terminals, and SSH to the node. */
  gateway?: boolean;
  /** With a second gateway, to which the streams of nodes go. */
  gatewayPair?: boolean;
  gatewayEnv?: (directory: string) => Record<string, string>;
  agentEnv?: (directory: string) => Record<string, string>;
  apiEnv?: () => Record<string, string>;
  stateMegabytes?: number;
  rootMegabytes?: number;
  /** With the pace and the limits that the product has by default, instead of shorter ones. */
  asByDefault?: boolean;
};

export type Lab = {
  directory: string;
  router: Host;
  network: Network;
  names: NameServer;
  control: Control;
  node: LabNode;
  second: LabNode | undefined;
  database: OwnDatabase | undefined;
  clock: WorldClock | undefined;
  edge: Edge | undefined;
  nginx: Nginx | undefined;
  gateway: Gateway | undefined;
  /** Of the user on the node, in a lab with a gateway. */
  allocation: Allocation | undefined;
  sshd: RunningProgram | undefined;
  logins: Logins;
  /** Of its database, where that is not its own. */
  backups(): Backups;
};

export type Link = "stream" | "poll";

/** What all labs of a run share. */
export type Place = { directory: string; database: SharedDatabase };

export type Site = Place & {
  /** For the self-test: the agent's records and the dashboard's answers are false. */
  falsify: boolean;
  /** How agents connect. */
  link: Link;
};

const falseRecords = { NODE_OPTIONS: `--import=${new URL("./false-records.mjs", import.meta.url).href}` };

/**
 * A heartbeat every two seconds, so this is five of them lost: an agent that a busy machine lets wait must not look like one that
 * is gone. Far below the half minute after which a stream without a sign of life is closed.
 */
const STALE_AFTER_SECONDS = 12;

export async function openLab(site: Site, number: number, options: LabOptions): Promise<Lab> {
  const directory = join(site.directory, `lab${number}`);
  mkdirSync(directory);
  const names = ["node", ...(options.second ? ["second"] : [])];
  const clock = options.clock ? openWorldClock(directory) : undefined;
  const database =
    options.ownDatabase || clock ? await openOwnDatabase(join(directory, "postgres"), clock?.binaries) : undefined;
  const [network, logins] = await Promise.all([
    openNetwork({ number, directory, nodes: names }),
    database?.logins ?? site.database.create(`lab${number}`),
  ]);
  const [first] = network.nodes;
  const nameServer = openNameServer({
    router: network.router,
    // Whatever stands in front of the api has the name from the beginning: no node ever finds the api itself.
    address: (options.edge || options.nginx) && first ? first.gateway : network.control.address,
    terminalAddress: options.gateway ? network.control.address : undefined,
    listen: network.nodes.map(({ gateway }) => gateway),
    directory,
  });
  const { asByDefault = false } = options;
  const staleAfterSeconds = asByDefault ? undefined : STALE_AFTER_SECONDS;
  const { falsify } = site;
  const plan = options.gateway ? await planGateway(randomBytes(32).toString("base64url")) : undefined;
  const env = { ...clock?.env, ...plan?.env, ...(options.nginx && first ? throughNginx(first.gateway) : {}) };
  const apiEnv = options.apiEnv?.();
  const control = await openControl({ network, directory, logins, staleAfterSeconds, falsify, env, apiEnv });
  const { operator, ingressToken } = control;
  const apiUrl = control.url;
  const ofGateway = { isPair: options.gatewayPair === true, env: options.gatewayEnv?.(directory) };
  const gateway = plan ? await openGateway({ plan, network, directory, apiUrl, ...ofGateway }) : undefined;
  if (gateway && first) await withUsers(first.host, directory);
  const inFront = first && { network, directory, ingressToken, listen: first.gateway };
  const edge = options.edge && inFront ? await openEdge(inFront) : undefined;
  const nginx = options.nginx && inFront ? await openNginx(inFront) : undefined;
  const [node, second] = await Promise.all(
    network.nodes.map((place, index) => {
      const linked = { HOLDFAST_AGENT_LINK: site.link, ...clock?.env };
      const ofFirst = { ...linked, ...(falsify ? falseRecords : {}), ...options.agentEnv?.(directory) };
      const special = index === 0 ? { env: ofFirst, ...options } : { env: linked, asByDefault };
      const pollHeld = site.link === "poll" ? control.pollHeld : undefined;
      return openNode({ place, directory, operator, pollHeld, ...special });
    }),
  );
  if (!node) throw new Error("a lab has a node");
  const sshd =
    gateway && first ? await openSsh({ network, place: first, directory, env: node.environment }) : undefined;
  const allocation = gateway ? await allocate(control, node.name) : undefined;
  const parts = {
    ...{ network, names: nameServer, control, node, second, database, clock, edge, nginx },
    ...{ gateway, allocation, sshd },
  };
  const backups = () => site.database.backups(`lab${number}`);
  return { directory, router: network.router, logins, backups, ...parts };
}

/** At once: nobody misses any of it. `keep` is where logs are copied to. */
export async function closeLab(lab: Lab | undefined, directory: string, keep?: string): Promise<void> {
  if (keep !== undefined) copyLogs(directory, keep);
  if (!lab) return;
  const programs = [
    lab.node.agent(),
    ...(lab.second ? [lab.second.agent()] : []),
    lab.control.api(),
    lab.control.worker(),
    ...(lab.edge ? [lab.edge.program] : []),
    ...(lab.gateway ? [lab.gateway.program, lab.gateway.redis()] : []),
    ...(lab.gateway?.ofNodes ? [lab.gateway.ofNodes] : []),
    ...(lab.sshd ? [lab.sshd] : []),
  ];
  // nginx ends its workers itself.
  await Promise.all([lab.names.stop(), lab.nginx?.program.stop(), ...programs.map((one) => one.stop("SIGKILL"))]);
  await Promise.all([lab.database?.stop(), lab.gateway?.front.stop()]);
  for (const host of [...lab.network.nodes.map((one) => one.host), lab.network.control.host, lab.router]) {
    process.kill(host.pid, "SIGKILL");
  }
  rmSync(directory, { recursive: true, force: true });
}

function copyLogs(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => path === from || path.endsWith(".log"),
  });
}
