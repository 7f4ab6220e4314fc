// A gateway on the control host of a lab, with a Redis for its sessions, and a user on the node whose terminal people open. Browsers and
// the command line reach it by a front at the desk, which plays the public edge; nodes by a name of its own.

import { join } from "node:path";
import { type Allocation, getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { type Front, openFront } from "../../../cli/test/support/edges.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import { holdfast } from "./command.ts";
import type { Control } from "./control.ts";
import type { Host } from "./host.ts";
import { type Network, TERMINAL_NAME, TERMINAL_PORT } from "./network.ts";
import { type RunningProgram, start } from "./program.ts";

const PUBLIC_PORT = 3002;
/** Of the gateway of clients, where nodes' streams reach the other one. */
const RELAYED_NODE_PORT = TERMINAL_PORT + 1;
const REDIS_PORT = 6379;
/** Within which a terminal is ready or has failed: short, so that scenarios are, and long enough for a busy machine. */
export const OPEN_SECONDS = 12;

export type Gateway = {
  program: RunningProgram;
  /** Where the streams of nodes arrive, which it passes on to the other one. */
  ofNodes: RunningProgram | undefined;
  /** What stands between people and the gateway. */
  front: Front;
  /** Where the front leads when nothing is wrong. */
  public: { host: string; port: number };
  redis(): RunningProgram;
  startRedis(): Promise<void>;
};

/** For the api, which is started first: where the gateway will be. */
export type GatewayPlan = { front: Front; env: Record<string, string>; serviceToken: string };

export async function planGateway(serviceToken: string): Promise<GatewayPlan> {
  const front = await openFront();
  return {
    ...{ front, serviceToken },
    env: { HOLDFAST_SERVICE_TOKEN: serviceToken, HOLDFAST_TERMINAL_OPEN_SECONDS: String(OPEN_SECONDS) },
  };
}

export async function openGateway(options: {
  plan: GatewayPlan;
  network: Network;
  directory: string;
  apiUrl: string;
  /** A second gateway has the address of nodes, so that client and node never meet at one of them. */
  isPair: boolean;
  env: Record<string, string> | undefined;
}): Promise<Gateway> {
  const { plan, network, directory } = options;
  const { host, desk } = network.control;
  const place = { host: desk, port: PUBLIC_PORT };
  const redisCommand = ["/usr/bin/redis-server", "--port", String(REDIS_PORT), "--bind", "127.0.0.1"];
  const launchRedis = () =>
    start({
      ...{ host, name: "redis", logFile: join(directory, "redis.log") },
      command: [...redisCommand, "--save", "", "--dir", directory],
    });
  const redises = [launchRedis()];
  const launch = (name: string, ports: { public: number; node: number }) =>
    start({
      ...{ host, name, logFile: join(directory, `${name}.log`) },
      command: [process.execPath, holdfast, "gateway"],
      env: { ...common, ...placeOf(ports) },
    });
  const placeOf = (ports: { public: number; node: number }) => ({
    HOLDFAST_GATEWAY_PORT: String(ports.public),
    HOLDFAST_NODE_TERMINAL_PORT: String(ports.node),
    HOLDFAST_GATEWAY_RELAY_URL: `https://127.0.0.1:${ports.node}`,
  });
  const common = {
    ...plan.env,
    ...options.env,
    HOLDFAST_GATEWAY_BIND: desk,
    HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${plan.front.port}`,
    HOLDFAST_TRUSTED_PROXIES: network.deskAddress,
    HOLDFAST_PUBLIC_URL: options.apiUrl,
    HOLDFAST_NODE_TERMINAL_BIND: "0.0.0.0",
    HOLDFAST_NODE_TERMINAL_URL: `https://${TERMINAL_NAME}:${TERMINAL_PORT}`,
    HOLDFAST_REDIS_URL: `redis://127.0.0.1:${REDIS_PORT}`,
    HOLDFAST_GATEWAY_LOG_LEVEL: "debug",
  };
  const [program, ofNodes] = options.isPair
    ? [
        launch("gateway", { public: PUBLIC_PORT, node: RELAYED_NODE_PORT }),
        launch("gateway-of-nodes", { public: PUBLIC_PORT + 10, node: TERMINAL_PORT }),
      ]
    : [launch("gateway", { public: PUBLIC_PORT, node: TERMINAL_PORT }), undefined];
  await Promise.all([program.ready, ofNodes?.ready]);
  plan.front.lead(place);
  return {
    ...{ program, ofNodes, front: plan.front, public: place },
    redis: () => redises.at(-1) as RunningProgram,
    async startRedis() {
      redises.push(launchRedis());
    },
  };
}

/** The node has users of its own. Copied there, where /etc has the files of the node already. */
export async function withUsers(host: Host, directory: string): Promise<void> {
  const own = join(directory, `${host.name}-etc`);
  const mounts = 'mount --bind "$1" /etc && mount -t tmpfs -o mode=755 tmpfs /home';
  await host.run("sh", "-c", `mkdir "$1" && cp -a /etc/. "$1" && ${mounts}`, "sh", own);
}

export async function allocate({ holdfast: atDesk, operator }: Control, node: string): Promise<Allocation> {
  const created = await atDesk("allocation", "create", "--node", node, "--user", "alice", "--json");
  if (created.code !== 0) throw new Error(`holdfast allocation create: ${created.stderr}`);
  const { id } = JSON.parse(created.stdout) as Allocation;
  return until("the allocation is active", PATIENCE_SECONDS, async () => {
    const allocation = await operator(getAllocation, { params: { allocation_id: id } });
    return allocation.status === "active" && allocation;
  });
}
