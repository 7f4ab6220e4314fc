// The first five minutes as a list, derived from the actual state. What a role may not do is
// left out.

import type { ActingRole } from "@holdfast/contracts/public/permissions";
import { scopesOfRole } from "@holdfast/contracts/public/permissions";

export type Step = {
  id: "signed-in" | "name" | "people" | "token" | "node";
  title: string;
  text: string;
  state: "done" | "open";
};

/** What a new installation calls its first organization. */
const nameAtStart = "Default";

export type Seen = { role: ActingRole; organizationName: string; members: number; tokens: number; nodes: number };

export function firstSteps({ role, organizationName, members, tokens, nodes }: Seen): Step[] {
  const may = scopesOfRole[role];
  const steps: Step[] = [
    {
      id: "signed-in",
      title: "Sign in",
      text: `You act in ${organizationName} as ${role}.`,
      state: "done",
    },
  ];
  if (may.has("org:write")) {
    steps.push({
      id: "name",
      title: "Name the organization",
      text: "Everyone you invite sees this name.",
      state: organizationName === nameAtStart ? "open" : "done",
    });
  }
  if (may.has("members:write")) {
    steps.push({
      id: "people",
      title: "Invite a member",
      text: "Each invitation is a one-time link for you to send. A second owner prevents being locked out.",
      state: members > 1 ? "done" : "open",
    });
  }
  if (may.has("tokens:write")) {
    steps.push({
      id: "token",
      title: "Create an API token",
      text: "For the command line, CI and scripts. It can have fewer permissions than your role, and can be revoked at any time.",
      state: tokens > 0 ? "done" : "open",
    });
  }
  if (may.has("nodes:write")) {
    steps.push({
      id: "node",
      title: "Add a node",
      text: "One command installs a small agent on the machine. The agent connects outbound, so no port has to be opened.",
      state: nodes > 0 ? "done" : "open",
    });
  }
  return steps;
}
