// Faults after which a node needs a new identity.

import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { revokeRecoveryTokens } from "@holdfast/contracts/endpoints/recovery";
import type { Lab } from "../lab/lab.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import type { Fault } from "./fault.ts";
import { enrolledAgain } from "./identity.ts";

const params = (lab: Lab) => ({ params: { node_id: lab.node.id } });

const tokenOf = async (lab: Lab) => (await lab.control.operator(getNode, params(lab))).recovery_token;

/** Until the node has shown a recovery token, with a higher number than `after`. */
async function hasToken(lab: Lab, after = 0): Promise<number> {
  return until("the node has a recovery token", PATIENCE_SECONDS, async () => {
    const seq = (await tokenOf(lab))?.seq ?? 0;
    return seq > after && seq;
  });
}

/** An hour passes while the node is connected: its certificate gets older, and its token is replaced. */
async function anHourPasses(lab: Lab): Promise<void> {
  const before = await hasToken(lab);
  clockOf(lab).set("+1h");
  await hasToken(lab, before);
}

function clockOf({ clock }: Lab) {
  if (!clock) throw new Error("this lab has no clock of its own");
  return clock;
}

/** The host is off until its certificate has expired, and its token has not. */
export function offBeyondExpiry(lab: Lab): Fault & { prepare(): Promise<void> } {
  return {
    what: "the host is off until its certificate has expired",
    prepare: () => anHourPasses(lab),
    async inject() {
      await lab.node.agent().stop();
      clockOf(lab).set("+24.5h");
    },
    repair: async () => lab.node.startAgent(),
  };
}

/** The same without a token, as on a host whose agent never had one. It is repaired as the product says. */
export function offWithoutToken(lab: Lab): Fault & { prepare(): Promise<void> } {
  return {
    what: "the host is off until its certificate has expired, and its recovery tokens are revoked",
    prepare: () => anHourPasses(lab),
    async inject() {
      await lab.node.agent().stop();
      await lab.control.operator(revokeRecoveryTokens, params(lab));
      clockOf(lab).set("+24.5h");
      lab.node.startAgent();
    },
    repair: enrolledAgain(lab).inject,
  };
}

/** Without a token an agent cannot get the right bundle by itself. */
export async function withoutToken(lab: Lab): Promise<void> {
  await hasToken(lab);
  await lab.node.stopAgent();
  await lab.control.operator(revokeRecoveryTokens, params(lab));
}

/** The host restores an identity from before its last recovery: the server has replaced that certificate. */
export function identityFromBackup(lab: Lab): Fault & { prepare(): Promise<void> } {
  const { node } = lab;
  const file = join(node.stateDir, "identity.pem");
  let backup = Buffer.alloc(0);
  return {
    what: "the agent starts with a certificate from before its last recovery",
    async prepare() {
      const seq = await hasToken(lab);
      backup = readFileSync(file);
      await node.agent().stop();
      rmSync(file);
      node.startAgent();
      await hasToken(lab, seq);
    },
    async inject() {
      await node.agent().stop();
      writeFileSync(file, backup, { mode: 0o600 });
      node.startAgent();
    },
    repair: async () => undefined,
  };
}

/** Both bundles are old ones: that of the ordinary path and that of recovery. */
export function allTrustReplaced(lab: Lab, staleBundle: string): Fault {
  const { node } = lab;
  const files = ["trust.pem", "recovery-ca.pem"].map((name) => join(node.stateDir, name));
  return {
    what: "all bundles with the server's CA are old ones",
    async inject() {
      await hasToken(lab);
      await node.agent().stop();
      for (const file of files) {
        if (existsSync(file)) copyFileSync(file, `${file}.kept`);
        writeFileSync(file, staleBundle);
      }
      node.startAgent();
    },
    repair: async () => {
      for (const file of files) if (existsSync(`${file}.kept`)) renameSync(`${file}.kept`, file);
    },
  };
}
