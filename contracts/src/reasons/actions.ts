// What each next action does and does not do, and how it is carried out: by a button of the node's page and its command,
// or where else. Page and command line offer exactly the one of the cause. No schema library here: pages load this file.

import type { NextAction } from "./vocabulary.ts";

/** What the product can do itself, by a button. `<id>` in a command stands for the node, `<task>` for the task. */
export type ActionButton = "reactivate" | "new_identity" | "bundle" | "replay_task";

export type ActionWay =
  /** Nothing to do: it repairs itself. */
  | { by: "itself" }
  | { by: "button"; button: ActionButton; command: string }
  /** On the host of the node, or on the server. */
  | { by: "person"; where: "host" | "server" | "provider" | "page"; how: string };

export type Action = {
  /** On the button, or as a heading. */
  title: string;
  does: readonly string[];
  doesNot: readonly string[];
  way: ActionWay;
};

const keepsWork = "It does not stop programs on the host, and removes no allocation.";
const untouched = "Holdfast changes nothing on the host by itself.";

const newIdentity = {
  does: [
    "Creates a token for this node that works once, for 15 minutes, and shows the command for the host.",
    "The command gives the node a new key and certificate. All earlier certificates are revoked.",
  ],
  doesNot: [keepsWork, "It does not end a quarantine: that is a decision of its own."],
  way: { by: "button", button: "new_identity", command: "holdfast node token create --node <id>" },
} as const;

export const actions: Readonly<Record<NextAction, Action>> = {
  wait: {
    title: "Wait",
    does: ["Holdfast retries, and shows here when the cause is gone."],
    doesNot: [keepsWork],
    way: { by: "itself" },
  },
  re_enroll: { title: "Enroll again", ...newIdentity },
  rebootstrap: {
    title: "Create recovery bundle",
    does: [
      "Creates a signed file for this node that works once, for 24 hours, and shows how to apply it on the host.",
      "Applying it gives the node a new key and certificate. All earlier certificates, recovery tokens and bundles end.",
    ],
    doesNot: [keepsWork, "It does not end a quarantine: that is a decision of its own."],
    way: { by: "button", button: "bundle", command: "holdfast node bundle create <id>" },
  },
  reactivate: {
    title: "Reactivate node",
    does: ["Ends the quarantine: the node gets tasks again.", "Checks the recovery before it counts as healthy."],
    doesNot: ["It does not renew or replace the node's certificate.", keepsWork],
    way: { by: "button", button: "reactivate", command: "holdfast node reactivate <id>" },
  },
  replay_task: {
    title: "Replay task",
    does: ["Creates a new task with the same type and parameters, linked to the old one."],
    doesNot: [
      "It never repeats a task that may not run twice.",
      "It does not change the old task: a late result of it is kept as evidence.",
    ],
    way: { by: "button", button: "replay_task", command: "holdfast task replay <task>" },
  },
  repair_certs: {
    title: "Repair certificates on the host",
    does: ["Restore the CA file that the agent trusts, then restart it: `systemctl restart holdfast-agent`."],
    doesNot: [untouched, "It does not give the node a new key."],
    way: { by: "person", where: "host", how: "`holdfast agent diagnose` shows which certificate is refused." },
  },
  repair_endpoint_profile: {
    title: "Correct the addresses",
    does: ["Set HOLDFAST_NODE_API_URL to the address that nodes reach, and restart the api: agents adopt it."],
    doesNot: ["It does not replace certificates.", untouched],
    way: { by: "person", where: "server", how: "`holdfast node show <id>` compares addresses with the profile." },
  },
  fix_control_plane: {
    title: "Repair the control plane",
    does: ["Repair it on the server first. Nodes return by themselves."],
    doesNot: ["Do not enroll nodes again before it is repaired: that would not last."],
    way: { by: "person", where: "server", how: "`holdfast status` shows which process is unhealthy." },
  },
  restart_agent: {
    title: "Start the agent",
    does: ["Start the service on the host: `systemctl start holdfast-agent`. Its log says why it stopped."],
    doesNot: ["It does not end terminals: shells outlive the agent.", untouched],
    way: { by: "person", where: "host", how: "`journalctl -u holdfast-agent -n 50`" },
  },
  sync_time: {
    title: "Correct the clock",
    does: ["Synchronize the host's clock. The agent continues by itself as soon as it is right."],
    doesNot: ["Do not renew certificates first: they are judged by the wrong time.", untouched],
    way: { by: "person", where: "host", how: "`timedatectl set-ntp true`, then `timedatectl status`." },
  },
  update_agent: {
    title: "Update the agent",
    does: ["Install the build that this server offers: the command of a new token does so."],
    doesNot: ["It does not change the node's identity.", keepsWork],
    way: { by: "person", where: "host", how: "`holdfast node show <id>` prints the version of its agent." },
  },
  reimage: {
    title: "Wipe the copied host",
    does: ["Wipe the host and enroll it as a new node."],
    doesNot: ["Do not reactivate the node before: whoever has its key could act as it."],
    way: {
      by: "person",
      where: "host",
      how: "Find both machines by their addresses: `holdfast node explain <id>` lists them.",
    },
  },
  free_disk: {
    title: "Free disk space",
    does: ["Remove what fills the disk. The agent delivers what it kept as soon as there is room."],
    doesNot: [untouched, "Do not remove the agent's journal: results in it would be lost."],
    way: { by: "person", where: "host", how: "`df -h /` and `du -xh --max-depth=1 / | sort -h`" },
  },
  repair_network: {
    title: "Repair the network",
    does: ["Restore the route, name resolution or firewall rule. The agent reconnects by itself."],
    doesNot: [untouched],
    way: { by: "person", where: "host", how: "`holdfast agent diagnose` shows the hop that fails." },
  },
  repair_edge_route: {
    title: "Repair the public route",
    does: ["Restore the rule of the edge or proxy, and the gateway behind it."],
    doesNot: [untouched, "It does not end terminals that are open."],
    way: { by: "person", where: "server", how: "`holdfast status` shows whether the gateway runs." },
  },
  repair_allocation_user: {
    title: "Repair the allocation's user",
    does: ["Restores user, shell and home as the allocation describes them."],
    doesNot: ["It removes no file of the user."],
    way: { by: "person", where: "page", how: "`holdfast allocation repair`, or Repair on the allocation's page." },
  },
  repair_ops_access: {
    title: "Restore login to the host",
    does: ["Repair SSH or the guest agent from the provider's side."],
    doesNot: ["The agent needs no repair: tasks and terminals go on."],
    way: { by: "person", where: "provider", how: "Use the provider's console." },
  },
  repair_app: {
    title: "Restart the app",
    does: ["Restart or redeploy the app, and read why its process ended."],
    doesNot: ["The node needs no repair."],
    way: { by: "person", where: "page", how: "Open the app's allocation." },
  },
  repair_app_route: {
    title: "Repair the route to the app",
    does: ["Check sign-in, headers and upstream of the route."],
    doesNot: ["The app itself is running: do not restart it."],
    way: { by: "person", where: "server", how: "Check the proxy between the public address and the app." },
  },
  repair_credential: {
    title: "Renew the credential",
    does: ["Renew the app's credential once, and check that the failures stop."],
    doesNot: ["Do not repeat it: more failures may lock the account."],
    way: { by: "person", where: "page", how: "Open the app's allocation." },
  },
  fix_access: {
    title: "Check the user's access",
    does: ["Check sign-in, role and limits of the user, and that the allocation is active."],
    doesNot: ["The node needs no repair."],
    way: { by: "person", where: "page", how: "Open the allocation, and the members of the organization." },
  },
  none: {
    title: "Nothing to do",
    does: ["Nothing is wrong."],
    doesNot: ["Nothing has to be repaired."],
    way: { by: "itself" },
  },
};
