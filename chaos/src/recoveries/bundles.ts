// Nodes that need an operator's bundle, and bundles that must not work.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { oldCertificate } from "../faults/identity.ts";
import { allTrustReplaced } from "../faults/recovery.ts";
import type { LabNode } from "../lab/node.ts";
import { foreignCa } from "../scenarios/foreign-ca.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import { agentCommand } from "./agent-command.ts";
import type { Recovery } from "./recovery.ts";
import { createBundle, hasRecoveryToken, startElsewhere, type Written } from "./steps.ts";
import type { RecoveryStory } from "./story.ts";
import { hoursPass, minutesPass } from "./time.ts";

const broughtBack = ["node.bundle_create", "node.recover", "node.bundle_apply"];

export const bundleForMissingToken: Recovery = {
  name: "token-missing",
  title:
    "the identity is rejected and there is no recovery token: a bundle, which works once, unchanged, on its own host",
  async run(story) {
    const { lab } = story;
    // A new enrollment ended the tokens that the host still has.
    await story.breaks({ ...oldCertificate(lab), repair: async () => undefined });
    await story.isClassified("node_agent_auth_failed");
    const bundle = await createBundle(story);
    await story.hostRefuses("bundle_wrong_host", otherNode(story), "bundle", "apply", bundle.file);
    await story.hostRefuses("bundle_tampered", lab.node, "bundle", "apply", changed(bundle));
    await story.host("bundle", "apply", bundle.file);
    await story.isGreen(broughtBack);
    await story.hostRefuses("bundle_already_applied", lab.node, "bundle", "apply", bundle.file);
    await usedElsewhere(story, bundle);
    await stillHealthy(story);
  },
};

export const bundleForStaleTrust: Recovery = {
  name: "trust-all-stale",
  title: "every bundle with the server's CA is an old one: a pasted line brings the right ones",
  async run(story) {
    const fault = allTrustReplaced(story.lab, foreignCa);
    await story.breaks({ ...fault, repair: async () => undefined });
    await story.handsInRecords("recovery_enrollment_blocked");
    await story.isClassified("recovery_enrollment_blocked");
    const bundle = await createBundle(story);
    await story.hostRefuses("bundle_untrusted", story.lab.node, "bundle", "apply", bundle.file);
    await story.host("bundle", "apply", "--line", bundle.line);
    await story.isGreen(broughtBack);
  },
};

export const bundleTooLate: Recovery = {
  name: "bundle-late",
  title: "the certificate has expired and there is no recovery token; the first bundle is applied too late",
  async run(story) {
    const { lab } = story;
    await story.breaks({
      what: "the host is off until its certificate has expired, and its recovery tokens are revoked",
      async inject() {
        await hasRecoveryToken(lab);
        await lab.node.agent().stop();
        await story.desk("node", "token", "revoke-recovery", lab.node.name);
        hoursPass(lab, 24.5);
        lab.node.startAgent();
      },
      repair: async () => undefined,
    });
    await story.isClassified("recovery_token_missing");
    const late = await createBundle(story, "--expires", "10");
    minutesPass(lab, 30);
    await story.hostRefuses("bundle_expired", lab.node, "bundle", "apply", late.file);
    await story.isClassified("recovery_token_missing");
    const bundle = await createBundle(story);
    await story.host("bundle", "apply", bundle.file);
    await story.isGreen(broughtBack);
  },
};

function otherNode({ lab }: RecoveryStory): LabNode {
  if (!lab.second) throw new Error("this lab has no second node");
  return lab.second;
}

/** Somebody changes the number in the file. */
function changed({ file }: Written): string {
  const copy = `${file}.changed`;
  writeFileSync(copy, readFileSync(file, "utf8").replace(/"seq": \d+/, '"seq": 99'));
  return copy;
}

/** Somebody has a copy of the bundle, and a machine that knows nothing of what was done on the right one. */
async function usedElsewhere(story: RecoveryStory, { line, id }: Written): Promise<void> {
  const { lab } = story;
  const stateDir = join(lab.directory, "thief");
  mkdirSync(stateDir, { mode: 0o700, recursive: true });
  const args = ["bundle", "apply", "--line", line, "--new-state", "--node", lab.node.id];
  const { code, stderr } = await agentCommand({ ...otherNode(story), stateDir }, args);
  if (code !== 0) throw new Error(`the bundle was not stored on a host without state: ${stderr}`);
  const agent = startElsewhere(lab, stateDir);
  await until("the second use is refused", PATIENCE_SECONDS, async () => {
    const { items } = await lab.control.operator(listAudit, { query: { action: "node.recover" } });
    return items.some(
      ({ result, reason, details }) =>
        result === "denied" && reason === "bundle_used" && details["bundle_id"] === id,
    );
  });
  await agent.stop("SIGKILL");
}

async function stillHealthy({ lab, node }: RecoveryStory): Promise<void> {
  const { connection, attention } = await node();
  if (connection === "online" && attention.length === 0) return;
  throw new Error(
    `${lab.node.name} is ${connection} after the refusals: ${attention.map(({ code }) => code).join()}`,
  );
}
