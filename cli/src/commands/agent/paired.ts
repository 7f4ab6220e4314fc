// The command `agent` of an installation: that of a host, and pair, list and revoke for the agents of an organization that run
// steps, which need a server. The agent that is shipped to hosts has only the former.

import {
  createAgentPairingToken,
  type ExecutionAgent,
  listAgents,
  revokeAgent,
} from "@holdfast/contracts/endpoints/agents";
import { agentStateTitles } from "@holdfast/contracts/words/state-titles";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { clientOf, findServerAndOrg, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";
import { agentCommand } from "./agent.ts";

export function agentCommandWithPaired(): Command {
  const agent = agentCommand();
  addPaired(agent);
  return agent;
}

function addPaired(agent: Command): void {
  withServerOptions(agent.command("pair"))
    .description("create a token that pairs one agent; it is shown once and works for 15 minutes")
    .action(async (options: ServerOptions) => {
      const { server, call, org_id } = await actIn(options);
      const { token, expiresAt } = await call(createAgentPairingToken, { params: { org_id } });
      const command = `holdfast agent connect --pairing-token ${token} --api-base ${server.url}`;
      printResult(options, { token, expiresAt, command }, () =>
        [
          "Run this on the machine on which steps are to run, in a checkout of Holdfast with npx before it:",
          "",
          `  ${command}`,
          "",
          `It works once, until ${localTime(expiresAt)}. Add --tags "east,group:alpha" so that steps can choose the agent by tag or group.`,
        ].join("\n"),
      );
    });
  withServerOptions(agent.command("list"))
    .description("list the agents that run steps, online ones first")
    .option("--all", "revoked agents too")
    .action(async (options: ServerOptions & { all?: boolean }) => {
      const { call, org_id } = await actIn(options);
      const { agents } = await call(listAgents, { params: { org_id } });
      const shown = agents.filter(({ status }) => options.all || status !== "revoked");
      printResult(options, { agents: shown }, () => describeAgents(shown, agents.length - shown.length));
    });
  withServerOptions(agent.command("revoke"))
    .description("revoke an agent: its token is no longer accepted, and its connection is closed at once")
    .argument("<id or name>")
    .action(async (wanted: string, options: ServerOptions) => {
      const { call, org_id } = await actIn(options);
      const found = findAgent((await call(listAgents, { params: { org_id } })).agents, wanted);
      await call(revokeAgent, { params: { org_id, agent_id: found.id } });
      printResult(options, { id: found.id, revoked: true }, () => `Agent ${found.name} (${found.id}) revoked.`);
    });
}

async function actIn(options: ServerOptions) {
  const server = await findServerAndOrg(options);
  if (!server.orgId) throw new UsageError("You are not a member of any organization.");
  return { server, call: clientOf(server), org_id: server.orgId };
}

function describeAgents(agents: readonly ExecutionAgent[], hidden: number): string {
  const others = hidden > 0 ? `\n\n${hidden} revoked; list them with --all.` : "";
  if (agents.length === 0) return `No agents yet. Pair one: \`holdfast agent pair\`.${others}`;
  return (
    table(agents, [
      { title: "name", of: (row) => row.name },
      { title: "state", of: (row) => stateOf(row) },
      { title: "in flight", of: (row) => `${row.inFlight}/${row.maxInFlight}` },
      { title: "tags", of: (row) => row.tags.join(" ") || null },
      { title: "version", of: (row) => row.agentVersion },
      { title: "last seen", of: (row) => localTime(row.lastSeenAt) ?? "never" },
      { title: "id", of: (row) => row.id },
    ]) +
    agents
      .filter((one) => one.otherJournalSeenAt !== null && one.status !== "revoked")
      .map(describeTwoJournals)
      .join("") +
    others
  );
}

function describeTwoJournals({ name, otherJournalSeenAt }: ExecutionAgent): string {
  return (
    `\n\n${name} was connected with two journals, last at ${localTime(otherJournalSeenAt)}: a second host uses its ` +
    "credentials, or its state directory was replaced. The newest connection gets new steps, and no step is sent to both. " +
    "Pair a second host as an agent of its own: `holdfast agent pair`."
  );
}

function stateOf({ status, draining }: ExecutionAgent): string {
  if (status === "online" && draining) return "draining";
  return agentStateTitles[status].title.toLowerCase();
}

/** Several agents may have the same name; then only the id decides. */
function findAgent(agents: readonly ExecutionAgent[], wanted: string): ExecutionAgent {
  const byId = agents.find(({ id }) => id === wanted);
  if (byId) return byId;
  const named = agents.filter(({ name, status }) => name === wanted && status !== "revoked");
  const [found, another] = named;
  if (!found)
    throw new UsageError(
      `Agent "${wanted}" not found, or you have no access. List agents with \`holdfast agent list\`.`,
    );
  if (another) {
    const ids = named.map(({ id }) => id).join(", ");
    throw new UsageError(`Several agents are named "${wanted}". Use the id of one of them: ${ids}.`);
  }
  return found;
}
