// Whether a verified bundle may be applied on this host, and what becomes of one whose trial failed. Pure; time is a
// parameter, in milliseconds.

import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { BundleRefused } from "./read.ts";

/** A bundle that was tried on this host before. */
export type PastBundle = {
  id: string;
  seq: number;
  node_id: string;
  at: string;
  /** Why it was given up; null: it is in force, or was until a newer one came. */
  reverted: string | null;
};

export type HostState = {
  /** From agent.json; undefined: there is none, or it cannot be read. */
  node: { id: string; name: string } | undefined;
  /** `--node`, an id or a name. */
  wanted: string | undefined;
  /** `--new-state`: this host has lost everything that it knew about the node. */
  newState: boolean;
  past: readonly PastBundle[];
  now: number;
};

export function refusalOf({ content }: RecoveryBundle, host: HostState): BundleRefused | undefined {
  const { node, bundle_id, seq, expires_at } = content;
  const isIt = (wanted: string) => wanted === node.id || wanted === node.name;
  if (host.node && host.node.id !== node.id) {
    return new BundleRefused(
      "bundle_wrong_host",
      `This host is the node ${host.node.name} (${host.node.id}); the bundle is for ${node.name} (${node.id}).`,
      "Apply it on its own host, or create one for this node: `holdfast node bundle create <node>`.",
    );
  }
  if (host.wanted !== undefined && !isIt(host.wanted)) {
    return new BundleRefused(
      "bundle_wrong_host",
      `The bundle is for ${node.name} (${node.id}), and --node says ${host.wanted}.`,
      "Create one for the right node: `holdfast node bundle create <node>`.",
    );
  }
  if (!host.node && !(host.newState && host.wanted !== undefined)) {
    return new BundleRefused(
      "bundle_no_state",
      "This host has no state of a node, so it is not certain that the bundle is for this machine.",
      `If it is ${node.name} and lost its state directory, run the command again with --new-state --node ${node.id}`,
    );
  }
  const past = host.past.filter((one) => one.node_id === node.id);
  const same = past.find(({ id }) => id === bundle_id);
  if (same?.reverted === null) {
    return new BundleRefused(
      "bundle_already_applied",
      `This bundle was applied here already, at ${same.at}. Each bundle works once.`,
      "If the node is not connected, run `holdfast agent diagnose`; for another attempt create a new bundle.",
    );
  }
  const newer = past.find((one) => one.reverted === null && one.seq > seq);
  if (newer) {
    return new BundleRefused(
      "bundle_older",
      `A newer bundle (number ${newer.seq}) was applied here at ${newer.at}; this is number ${seq}.`,
      "Create a new one on the server: `holdfast node bundle create <node>`.",
    );
  }
  if (Date.parse(expires_at) <= host.now) {
    return new BundleRefused(
      "bundle_expired",
      `This bundle expired at ${expires_at}, by this host's clock.`,
      "Check the clock (`timedatectl`), or create a new bundle on the server: `holdfast node bundle create <node>`.",
    );
  }
  return undefined;
}

/** Only an operator can change these answers of the server: the bundle is of no use any more. */
const final: ReadonlySet<string> = new Set([
  ...["bundle_unknown", "bundle_expired", "bundle_used", "bundle_revoked"],
  ...["node_retired", "node_quarantined", "identity_revoked", "identity_retired", "csr_invalid"],
]);

/** Whether the previous set stays for good. Until then the bundle is tried again. */
export function isGivenUp(facts: {
  /** Of the server's refusal; undefined: it did not respond, or something else did. */
  code: string | undefined;
  expiresAt: number;
  /** The server has issued one for this bundle. The previous one is not accepted any more, so the bundle is all there is. */
  hasIdentity: boolean;
  now: number;
}): boolean {
  if (facts.code !== undefined && final.has(facts.code)) return true;
  return !facts.hasIdentity && facts.expiresAt <= facts.now;
}
