// Rows about terminals, each produced between whole processes.

import { execFileSync } from "node:child_process";
import type { Installation } from "../installation.ts";
import type { RowAt } from "../row.ts";

type TerminalRow = RowAt<"installation">;

export const terminalRows: TerminalRow[] = [
  row("T02", "another site answers at the gateway's public address", async ({ publicFront, stand }) =>
    publicFront.lead(await stand.otherSite()),
  ),
  row("T03", "a proxy in front of the gateway passes no WebSockets on", async ({ publicFront, stand }) =>
    publicFront.lead(await stand.withoutUpgrades()),
  ),
  row("D23", "nothing listens at the gateway's public address; tasks go on", async ({ publicFront }) =>
    publicFront.lead("refused"),
  ),
  {
    ...row("T04", "the gateway's address for nodes is right and does not respond", async ({ nodeFront }) =>
      nodeFront.lead("silent"),
    ),
    nextAction: "repair_network",
  },
  {
    ...row("D24", "the gateway's address for nodes is right and refuses connections", async ({ nodeFront }) =>
      nodeFront.lead("refused"),
    ),
    nextAction: "repair_network",
  },
  {
    ...row("T05", "somebody takes the stream of a current agent and tells the gateway nothing", async (place) =>
      place.nodeFront.lead(await place.stand.sink()),
    ),
    nextAction: "repair_endpoint_profile",
  },
  row("T06", "a proxy ends the TLS of the node's stream", async ({ nodeFront, stand }) =>
    nodeFront.lead(await stand.tlsEnd()),
  ),
  row("T08", "what the gateway sends to the client is lost", async ({ publicFront, ports }) =>
    publicFront.lead({ headsOnlyFrom: ports.public }),
  ),
  row(
    "T09",
    "another listener of the installation is at the address published to nodes",
    async ({ nodeFront, ports }) => nodeFront.lead(ports.nodeApi),
  ),
  {
    ...row("T07", "the user is removed from the host", async ({ shells }) =>
      execFileSync("userdel", ["--force", shells.allocation.username], { stdio: "ignore" }),
    ),
    repair: ({ shells }) => shells.json(["allocation", "repair", shells.allocation.id]),
  },
  {
    ...{ row: "T01", how: "an allocation could not be provisioned, and somebody opens a terminal of it" },
    at: "installation",
    async run({ shells }, injected) {
      const { name } = shells.node;
      // An account of the system is nobody's to have.
      await shells.run(["allocation", "create", "--node", name, "--user", "daemon", "--json"]);
      injected();
      const { code } = await shells.run(["terminal", `daemon@${name}`, "--json"]);
      if (code === 0) throw new Error("the terminal was permitted");
    },
  },
];

function row(name: string, how: string, inject: (place: Installation) => unknown): TerminalRow {
  return {
    ...{ row: name, how, at: "installation" },
    async run(place, injected) {
      injected();
      await inject(place);
      await place.terminalFails();
    },
  };
}
