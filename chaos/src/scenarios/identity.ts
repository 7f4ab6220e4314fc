// The node's own certificate.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Fault } from "../faults/fault.ts";
import type { Lab } from "../lab/lab.ts";
import type { Scenario } from "../scenario.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

export const rotated: Scenario = {
  name: "certificate-rotated",
  title: "the node is enrolled again while its agent runs",
  expect: { hop: "identity", signal: "node_agent_auth_failed", seconds: 30 },
  async run(story) {
    const { lab } = story;
    const serialOf = async () =>
      (await lab.control.operator(getNode, { params: { node_id: lab.node.id } })).certificate?.serial;
    const before = await serialOf();
    const { pid } = lab.node.agent();
    const task = await story.gives({ params: { hold_ms: 8_000 } });
    await story.breaks(enrolledAgain(lab));
    // Refused once with the old one, which makes the agent look for another.
    await story.historyHas("identity_revoked");
    await story.mends();
    await story.succeeds(task);
    const after = await until("another certificate is in use", PATIENCE_SECONDS, async () => {
      const serial = await serialOf();
      return serial !== before && serial;
    });
    if (lab.node.agent().pid !== pid) throw new Error("the agent was restarted");
    story.notes(`the running agent took up ${after} by itself, and its task went on`);
    await story.allIsWell();
  },
};

function enrolledAgain(lab: Lab): Fault {
  return {
    what: "the node has a new certificate, and the old one ends",
    async inflict() {
      const body = { node_id: lab.node.id };
      const { token, api_url } = await lab.control.operator(createEnrollmentToken, { body });
      await lab.node.holdfast(["join", "--api", api_url], { HOLDFAST_ENROLLMENT_TOKEN: token });
    },
    mend: async () => undefined,
  };
}
