// Rows about the host, as somebody sees it who can log in to it, or cannot.

import { connect } from "node:net";
import { agentStopped } from "../../faults/host.ts";
import type { Row } from "../row.ts";
import type { Scene } from "../scene.ts";

export const hostRows: Row[] = [
  {
    row: "N07",
    how: "the agent's service is stopped; an operator hands in what the service manager says",
    at: "lab",
    async run(scene) {
      await scene.breaks(agentStopped(scene.lab.node));
      await scene.handsIn("--service", "inactive");
    },
  },
  {
    row: "N09",
    how: "the agent's binary does not start on the host; an operator hands in what the service manager says",
    at: "lab",
    async run(scene) {
      await scene.breaks(agentStopped(scene.lab.node));
      await scene.handsIn("--service", "failed", "--binary", "format_error");
    },
  },
  {
    row: "N10",
    how: "no SSH connection to the host; an operator hands that in",
    at: "lab",
    async run(scene) {
      await scene.breaks(sshRefused(scene));
      await scene.handsIn("--ssh", "failed");
    },
  },
  {
    row: "N11",
    how: "no SSH connection to the host, and the provider says that its guest agent is down; an operator hands that in",
    at: "lab",
    async run(scene) {
      await scene.breaks(sshRefused(scene));
      await scene.handsIn("--ssh", "failed", "--guest-agent", "down");
    },
  },
];

/** Nothing listens there. That it is so is checked, and not assumed. */
function sshRefused({ lab }: Scene) {
  return {
    what: "nobody can log in by SSH",
    inject: () =>
      new Promise<void>((resolve, reject) => {
        connect({ host: lab.node.address, port: 22 })
          .once("connect", () => reject(new Error("somebody listens for SSH on the host")))
          .once("error", () => resolve());
      }),
    repair: async () => undefined,
  };
}
