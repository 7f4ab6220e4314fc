// Faults of the network, as rules on a lab's router. Each has a table of its own, so that they can be laid over
// each other and taken away one by one.

import type { Host } from "../lab/host.ts";
import type { Lab } from "../lab/lab.ts";
import { API_PORT, TERMINAL_PORT } from "../lab/network.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import type { Fault } from "./fault.ts";

let tables = 0;

/** `rules` are of the chain that forwarded packets pass, unless they bring chains of their own. */
function rules(router: Host, what: string, content: string): Fault {
  tables += 1;
  const table = `inet chaos${tables}`;
  return {
    what,
    inject: () => router.nft(`table ${table} {\n${content}\n}\n`),
    // Made first: then there is one to delete.
    repair: () => router.nft(`table ${table}\ndelete table ${table}\n`),
  };
}

const forwarded = (rule: string) =>
  `chain forwarded { type filter hook forward priority 0; policy accept; ${rule}; }`;

const toApi = (lab: Lab) =>
  `ip saddr ${lab.node.address} ip daddr ${lab.network.control.address} tcp dport ${API_PORT}`;
const fromApi = (lab: Lab) =>
  `ip saddr ${lab.network.control.address} ip daddr ${lab.node.address} tcp sport ${API_PORT}`;

/** As a firewall does that is silent about it. */
export const egressDropped = (lab: Lab) =>
  rules(lab.router, "the router drops what the node sends to the api", forwarded(`${toApi(lab)} drop`));

/** As one does that says so. */
export const egressRejected = (lab: Lab) =>
  rules(
    lab.router,
    "the router resets what the node sends to the api",
    forwarded(`${toApi(lab)} reject with tcp reset`),
  );

export const terminalEgressDropped = (lab: Lab) =>
  rules(
    lab.router,
    "the router drops what the node sends to the terminal gateway",
    forwarded(`ip saddr ${lab.node.address} tcp dport ${TERMINAL_PORT} drop`),
  );

/** What the node sends arrives, over a connection that exists; what the api answers does not. */
export const answersDropped = (lab: Lab) =>
  ofConnections(lab, "the router drops what the api sends to the node", () => `${fromApi(lab)} drop`);

export const nameServerSilent = (lab: Lab) =>
  rules(
    lab.router,
    "questions for names are dropped",
    `chain asked { type filter hook input priority 0; policy accept; ip saddr ${lab.node.address} udp dport 53 drop; }`,
  );

/** In both directions of the node's cable, whatever passes it. */
export const lossy = (lab: Lab, percent: number) =>
  rules(
    lab.router,
    `${percent} % of all packets of the node are lost`,
    `chain coming { type filter hook prerouting priority -300; policy accept;
       iifname "to-node" numgen random mod 100 < ${percent} drop; }
     chain going { type filter hook postrouting priority 300; policy accept;
       oifname "to-node" numgen random mod 100 < ${percent} drop; }`,
  );

/**
 * Whatever the node sends to the api's own address is reset: of connections that exist, and of those that an earlier lookup of
 * the name is just about to make. The api gets none of it, not even the end of a connection.
 */
export const connectionsReset = (lab: Lab) => ({
  ...egressRejected(lab),
  what: "the connections of the node are reset",
});

/** As a router does that has rebooted: it knows nothing of connections that exist, and drops what belongs to them. */
export const connectionsForgotten = (lab: Lab) =>
  ofConnections(
    lab,
    "the router has forgotten the connections that pass it",
    (ports) => `${toApi(lab)} tcp sport ${ports} drop; ${fromApi(lab)} tcp dport ${ports} drop`,
  );

/**
 * A rule about those that exist when it is injected. There must be one, and none beside: a connection that is made at this
 * moment is met by another try.
 */
function ofConnections(lab: Lab, what: string, rule: (ports: string) => string): Fault {
  let fault: Fault | undefined;
  const met = async () => {
    await fault?.repair();
    fault = undefined;
    const ports = await openPorts(lab);
    if (ports.length === 0) return false;
    fault = rules(lab.router, what, forwarded(rule(`{ ${ports.join(", ")} }`)));
    await fault.inject();
    return (await openPorts(lab)).every((port) => ports.includes(port));
  };
  return {
    what,
    inject: async () => void (await until(what, PATIENCE_SECONDS, met)),
    repair: async () => fault?.repair(),
  };
}

/** The node's ends of its connections to the api. */
async function openPorts(lab: Lab): Promise<number[]> {
  const table = await lab.node.host.run("cat", "/proc/self/net/tcp");
  const established = "01";
  return table
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote, state]) => state === established && portOf(remote) === API_PORT)
    .map(([, local]) => portOf(local));
}

function portOf(address = ""): number {
  return Number.parseInt(address.split(":")[1] ?? "", 16);
}
