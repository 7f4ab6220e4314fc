// The network of a lab: each host hangs on the router by a cable of its own, and the control host also on the
// operator's desk, which is where the scenarios look from. No fault touches the desk.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Host, openHost } from "./host.ts";

const execute = promisify(execFile);

/** What nodes call the server. */
export const API_NAME = "nodes.holdfast.test";
export const API_PORT = 18_442;
/** And what they call the terminal gateway. */
export const TERMINAL_NAME = "term.holdfast.test";
export const TERMINAL_PORT = 18_443;

export type NetworkHost = {
  host: Host;
  address: string /** Of the router, on the cable to it. */;
  gateway: string;
};

export type Network = {
  router: Host;
  control: NetworkHost & { /** Where the operator's desk reaches it. */ desk: string };
  nodes: NetworkHost[];
  /** The operator's desk, as the control host sees it. */
  deskAddress: string;
};

/** `number` from 1 to 150: it makes the addresses this lab's own. */
export async function openNetwork(options: {
  number: number;
  directory: string;
  nodes: readonly string[];
}): Promise<Network> {
  const net = `10.${100 + options.number}`;
  const open = (name: string, more: { nameServer?: string } = {}) =>
    openHost({ name, directory: join(options.directory, name), ...more });
  const [router, control, ...nodes] = await Promise.all([
    open("router"),
    open("control"),
    ...options.nodes.map((name, index) => open(name, { nameServer: `${net}.${index + 2}.1` })),
  ]);
  const desk = `desk${options.number}`;
  const cables = [control, ...nodes].map((host, index) => ({ host, name: `to-${host.name}`, subnet: index + 1 }));
  await batch(
    ...cables.map(
      ({ host, name }) => `link add cable netns ${host.pid} type veth peer name ${name} netns ${router.pid}`,
    ),
    `link add ${desk} type veth peer name desk netns ${control.pid}`,
    `addr add ${net}.0.1/24 dev ${desk}`,
    `link set ${desk} up`,
  );
  await Promise.all([
    router.ip(
      ...cables.flatMap(({ name, subnet }) => [
        `addr add ${net}.${subnet}.1/24 dev ${name}`,
        `link set ${name} up`,
      ]),
    ),
    router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
    control.ip(`addr add ${net}.0.2/24 dev desk`, "link set desk up"),
    ...cables.map(({ host, subnet }) =>
      host.ip(
        `addr add ${net}.${subnet}.2/24 dev cable`,
        "link set cable up",
        `route add default via ${net}.${subnet}.1`,
      ),
    ),
  ]);
  const place = (host: Host, subnet: number) => ({
    host,
    address: `${net}.${subnet}.2`,
    gateway: `${net}.${subnet}.1`,
  });
  return {
    router,
    control: { ...place(control, 1), desk: `${net}.0.2` },
    nodes: nodes.map((host, index) => place(host, index + 2)),
    deskAddress: `${net}.0.1`,
  };
}

function batch(...lines: string[]): Promise<void> {
  const done = execute("ip", ["-batch", "-"]);
  done.child.stdin?.end(`${lines.join("\n")}\n`);
  return done.then(() => undefined);
}
