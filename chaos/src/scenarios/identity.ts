// The node's own certificate.

import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { enrolledAgain, oldCertificate } from "../faults/identity.ts";
import { LONG_POLLS } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

export const rotated: Scenario = {
  name: "certificate-rotated",
  title: "the node is enrolled again while its agent runs",
  expect: { sightings: [{ by: "history", code: "auth_failed", within: 60 }] },
  async run(story) {
    const { lab } = story;
    const serialOf = async () =>
      (await lab.control.operator(getNode, { params: { node_id: lab.node.id } })).certificate?.serial;
    const before = await serialOf();
    const { pid } = lab.node.agent();
    const task = await story.gives({ params: { hold_ms: 8_000 } });
    await story.breaks(enrolledAgain(lab));
    // Refused once with the old one, which makes the agent look for another.
    await story.historyHas("auth_failed");
    await story.repairs();
    await story.succeeds(task);
    const after = await until("another certificate is in use", PATIENCE_SECONDS, async () => {
      const serial = await serialOf();
      return serial !== before && serial;
    });
    if (lab.node.agent().pid !== pid) throw new Error("the agent was restarted");
    story.notes(`the running agent took up ${after} by itself, and its task went on`);
    await story.recovers();
  },
};

export const rejected: Scenario = {
  name: "certificate-rejected",
  title: "the agent starts with a certificate that was replaced: the server refuses it",
  expect: {
    rows: ["N04"],
    sightings: [
      { by: "dashboard", code: "auth_failed", within: 75 },
      { by: "host", code: "auth_failed", within: 75 },
      { by: "user", code: "task_not_taken", within: 60 },
    ],
    // That it is offline is a symptom of the rejection.
    before: { connection: "offline" },
    // It may have tried to recover, with a token that ended with the old certificate.
    beside: "recovery_refused",
  },
  lab: { agentEnv: () => LONG_POLLS },
  async run(story) {
    await story.breaks(oldCertificate(story.lab));
    // No agent runs with a certificate that the server accepts: nobody takes it.
    const waiting = await story.gives();
    await Promise.all([
      story.dashboardSees("auth_failed"),
      story.hostSees("auth_failed"),
      isOffline(story),
      story.userIsRefused(),
    ]);
    await story.repairs();
    await story.succeeds(waiting);
    await story.recovers();
  },
};

async function isOffline({ lab }: Story): Promise<void> {
  await until("the node is offline", PATIENCE_SECONDS, async () => {
    const { connection } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
    return connection === "offline";
  });
}
