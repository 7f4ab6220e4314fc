// What became of an allocation's user, in the same words on the page and on the command line. No schema library
// here: pages read it too.

import type { AllocationRemoval } from "../endpoints/allocations.ts";

type Released = { username: string; node_name: string; removal: AllocationRemoval | null };

const sentences: Record<AllocationRemoval, (user: string, node: string) => string> = {
  removed: (user, node) => `Allocation released. User ${user} was removed from ${node}, with its home directory.`,
  nothing_to_remove: (user, node) => `Allocation released. There was no user ${user} on ${node} to remove.`,
  left_alone: (user, node) =>
    `Allocation released. The user ${user} on ${node} was left alone, because Holdfast did not create it.`,
  own_account: (user, node) =>
    `Allocation released. ${user} is the agent's own account on ${node} and was not changed.`,
  unconfirmed: (user, node) =>
    `Allocation released, but the removal is not confirmed: ${node} was retired first. User ${user} may still exist on that machine.`,
};

export function removalInWords({ username, node_name, removal }: Released): string {
  return removal === null ? "Allocation released." : sentences[removal](username, node_name);
}

/** The result of a repair's task, as far as people read it. */
export type RepairedUser = {
  uid: number;
  home: string;
  shell: string;
  restored: ("group" | "account" | "primary_group" | "shell" | "home")[];
  own_account: boolean;
  keys: number;
};

export function repairInWords(
  allocation: { username: string; node_name: string },
  repaired: RepairedUser,
): string {
  const { username, node_name } = allocation;
  const { uid, home, shell, restored, own_account, keys } = repaired;
  const where = `${username} on ${node_name}`;
  if (own_account)
    return `Nothing to repair: ${where} is the agent's own account, which Holdfast does not change.`;
  const present = `account and group ${username} (uid ${uid}), shell ${shell}, home ${home}`;
  if (restored.length === 0) return `Nothing to repair for ${where}. Checked: ${present}.`;
  const names: Record<RepairedUser["restored"][number], string> = {
    group: `group ${username}`,
    account: `account ${username} (uid ${uid})`,
    primary_group: `primary group ${username}`,
    shell: `shell ${shell}`,
    home: `home ${home} (new, with ${keys === 1 ? "1 SSH key" : `${keys} SSH keys`})`,
  };
  const kept = restored.includes("home") ? [] : [`Home ${home} was not changed.`];
  return [`Repaired ${where}. Restored: ${restored.map((part) => names[part]).join(", ")}.`, ...kept].join(" ");
}
