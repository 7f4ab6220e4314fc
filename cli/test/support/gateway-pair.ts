// A whole installation with a second gateway and a Redis, all as processes of their own. Clients, nodes and agents reach
// either gateway through one address each, and whatever is killed is started again.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import {
  answers,
  type Environment,
  type Installation,
  openInstallation,
  type Ready,
  until,
} from "../../../testkit/processes/holdfast.ts";
import { startTestRedis, type TestRedis } from "../../../testkit/redis/redis.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { type Staying, stayRunning } from "./staying.ts";

export type PairedGateway = {
  url: string;
  internalUrl: string;
  pid(): number;
  /** Its first sample whose line contains the label; 0 if there is none. */
  metric(name: string, label: string): Promise<number>;
  /** Stops it in order; resolves when its process has ended. Another one is started at once. */
  stop(): Promise<void>;
  ready(): Promise<void>;
};

export type GatewayPair = {
  installation: Installation;
  ready: Ready;
  redis: TestRedis;
  gateways: readonly [PairedGateway, PairedGateway];
  dispatchToken: string;
  /** Of the local operator. */
  token: string;
  call: Client;
  org: string;
  cleanUp(): Promise<void>;
};

/** `through`: what agents connect to in place of the gateways' public address, by the port of that. */
export async function openGatewayPair(
  options: { env?: Environment; through?(port: number): Promise<number> } = {},
): Promise<GatewayPair> {
  const installation = openInstallation();
  const undo: (() => unknown)[] = [() => installation.cleanUp()];
  const cleanUp = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return { ...(await start(installation, options, undo)), cleanUp };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

type Options = NonNullable<Parameters<typeof openGatewayPair>[0]>;
type Six = [number, number, number, number, number, number];

async function start(
  installation: Installation,
  { env = {}, through = async (port) => port }: Options,
  undo: (() => unknown)[],
): Promise<Omit<GatewayPair, "cleanUp">> {
  const redis = await startTestRedis();
  undo.push(() => redis.stop());
  const ports = await freePorts<Six>(6);
  const own = [portsFrom(ports.slice(0, 3)), portsFrom(ports.slice(3))] as const;
  const [front, nodes]: Balancer[] = [
    await startBalancer(own.map((one) => one.port)),
    await startBalancer(own.map((one) => one.nodePort)),
  ];
  undo.push(() => Promise.all([front?.stop(), nodes?.stop()]));
  const dispatchToken = `hfg_${randomBytes(32).toString("base64url")}`;
  const common = {
    HOLDFAST_SERVICE_TOKEN: `hfv_${randomBytes(32).toString("base64url")}`,
    HOLDFAST_DISPATCH_TOKEN: dispatchToken,
    HOLDFAST_REDIS_URL: redis.url,
    HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${front?.port}`,
    HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${nodes?.port}`,
    HOLDFAST_EXECUTION_WS_URL: `ws://127.0.0.1:${await through(front?.port ?? 0)}/ws`,
    ...env,
  };
  const ready = await installation.up({ ...common, ...gatewayPorts(own[0]) }).ready;
  const second = stayRunning(() =>
    installation.start(["gateway"], {
      ...common,
      ...gatewayPorts(own[1]),
      HOLDFAST_API_INTERNAL_URL: ready.api_internal_url,
    }),
  );
  undo.push(() => second.stop());
  const gateways = [supervised(installation, own[0]), beside(second, own[1])] as const;
  for (const gateway of gateways) await gateway.ready();
  const token = readFileSync(join(installation.dataDir, "operator-token"), "utf8").trim();
  const call = createClient({ baseUrl: ready.api_url, token });
  const org = (await call(getMe, {})).organizations[0]?.id ?? "";
  return { installation, ready, redis, gateways, dispatchToken, token, call, org };
}

type Ports = { port: number; internalPort: number; nodePort: number };

function portsFrom([port = 0, internalPort = 0, nodePort = 0]: number[]): Ports {
  return { port, internalPort, nodePort };
}

function gatewayPorts({ port, internalPort, nodePort }: Ports): Environment {
  return {
    HOLDFAST_GATEWAY_PORT: String(port),
    HOLDFAST_GATEWAY_INTERNAL_PORT: String(internalPort),
    HOLDFAST_NODE_TERMINAL_PORT: String(nodePort),
  };
}

/** The one that `holdfast up` runs. */
function supervised(installation: Installation, ports: Ports): PairedGateway {
  const pid = () => installation.upFile().children["gateway"]?.pid ?? 0;
  return gatewayAt(ports, pid, async () => {
    const before = pid();
    process.kill(before, "SIGTERM");
    await until(() => pid() !== before);
  });
}

function beside(staying: Staying, ports: Ports): PairedGateway {
  return gatewayAt(ports, staying.pid, () => staying.end("SIGTERM"));
}

function gatewayAt({ port, internalPort }: Ports, pid: () => number, stop: () => Promise<void>): PairedGateway {
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ url, internalUrl: `http://127.0.0.1:${internalPort}`, pid, stop },
    async metric(name, label) {
      const page = await (await fetch(`${url}/metrics`)).text();
      const line = page.split("\n").find((one) => one.startsWith(`${name}{`) && one.includes(`"${label}"`));
      return Number(line?.split(" ").at(-1) ?? 0);
    },
    ready: () => until(() => answers(`${url}/readyz`)),
  };
}
