// An installation on one machine, as `holdfast up` runs it with default limits, between fronts that can be led elsewhere:
// where terminals fail for real.

import { type Explanation, explainNode } from "@holdfast/contracts/endpoints/drift";
import { PROMISED_SECONDS } from "@holdfast/contracts/terminal/deadlines";
import {
  type Front,
  openFront,
  openOtherSite,
  openProxyWithoutUpgrades,
  openSink,
  openTlsEnd,
  type Standing,
} from "../../../cli/test/support/edges.ts";
import { openShells, type Shells } from "../../../cli/test/support/shells.ts";
import { enrollGateway, SERVICE_TOKEN } from "../../../testkit/api/services.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

export type Installation = {
  shells: Shells;
  /** Of the gateway's listeners: as published to people, and to nodes. */
  publicFront: Front;
  nodeFront: Front;
  ports: { public: number; node: number; nodeApi: number };
  /** Standing between the parts; stopped at the end. */
  stand: Record<"otherSite" | "withoutUpgrades" | "sink" | "tlsEnd", () => Promise<number>>;
  /** Somebody opens a terminal at the command line, and it does not come up. */
  terminalFails(): Promise<void>;
  terminalWorks(): Promise<void>;
  explain(): Promise<Explanation>;
  repair(): Promise<void>;
  close(): Promise<void>;
};

export async function openInstallation(): Promise<Installation> {
  const [publicFront, nodeFront] = await Promise.all([openFront(), openFront()]);
  const shells = await openShells({
    HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
    // The product's default: the support of tests is more patient.
    HOLDFAST_TERMINAL_OPEN_SECONDS: String(PROMISED_SECONDS.default),
    HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${publicFront.port}`,
    HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${nodeFront.port}`,
  });
  const ready = await shells.up.ready;
  const portOf = (url: string) => Number(new URL(url).port);
  const ports = {
    public: portOf(ready.gateway_url),
    node: portOf(ready.node_terminal_url),
    nodeApi: portOf(ready.node_api_url),
  };
  // A second service of the same installation has a certificate that nodes trust.
  const service = await enrollGateway({ internalUrl: ready.api_internal_url });
  const certificate = service.tls as { cert: string; key: string };
  const { token } = await shells.json<{ token: string }>(["token", "create", "--name", "m", "--role", "admin"]);
  Object.assign(shells.env, { HOLDFAST_API_URL: ready.api_url, HOLDFAST_TOKEN: token });
  const standing: Standing[] = [];
  const standAs = (open: () => Promise<Standing>) => async () => {
    const one = await open();
    standing.push(one);
    return one.port;
  };
  const lead = () => {
    publicFront.lead(ports.public);
    nodeFront.lead(ports.node);
  };
  const place: Installation = {
    ...{ shells, publicFront, nodeFront, ports },
    stand: {
      otherSite: standAs(openOtherSite),
      withoutUpgrades: standAs(() => openProxyWithoutUpgrades(() => ports.public)),
      sink: standAs(() => openSink(certificate)),
      tlsEnd: standAs(() => openTlsEnd(certificate, () => ports.node)),
    },
    async terminalFails() {
      const { code, stdout } = await shells.piped("exit\n", ["--json"]);
      if (code === 0) throw new Error(`the terminal came up: ${stdout}`);
    },
    async terminalWorks() {
      const { code, stderr } = await shells.piped("echo so''much; exit\n");
      if (code !== 0) throw new Error(`the terminal does not come up: ${stderr}`);
    },
    explain: () => shells.operator()(explainNode, { params: { node_id: shells.node.id } }),
    async repair() {
      lead();
      await place.terminalWorks();
      await until("nothing is wrong any more", PATIENCE_SECONDS, async () => (await place.explain()).healthy);
    },
    async close() {
      await shells.cleanUp();
      await Promise.all([publicFront, nodeFront, ...standing].map((one) => one.stop()));
    },
  };
  lead();
  return place;
}
