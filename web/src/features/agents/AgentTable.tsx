// Agents as rows: whether each is connected, what it is chosen for, and how much it runs.

import type { ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import { Link } from "@tanstack/react-router";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { agentMark } from "./agent-marks.ts";

type AgentTableProps = {
  agents: readonly ExecutionAgent[];
  /** Undefined: the reader may not revoke agents. */
  onRevoke?: ((agent: ExecutionAgent) => void) | undefined;
};

export function AgentTable({ agents, onRevoke }: AgentTableProps) {
  const columns = [
    ...["Agent", "State", "Tags", "In flight"],
    { wide: "Runs" },
    { wide: "Version" },
    <ActionsHeader key="actions" />,
  ];
  return (
    <Table label="Agents" columns={columns}>
      {agents.map((agent) => (
        <AgentRow key={agent.id} agent={agent} onRevoke={onRevoke && (() => onRevoke(agent))} />
      ))}
    </Table>
  );
}

function AgentRow({ agent, onRevoke }: { agent: ExecutionAgent; onRevoke?: (() => void) | undefined }) {
  const copyId = async () => {
    await navigator.clipboard.writeText(agent.id);
    toast("Agent id copied");
  };
  return (
    <tr>
      <Cell className="min-w-40">
        <Link
          to="/executions"
          search={{ agent_id: agent.id }}
          className="rounded-sm font-medium [overflow-wrap:anywhere] hover:underline"
        >
          {agent.name}
        </Link>
        <span className="block text-sm text-ink-muted">
          paired <When at={agent.createdAt} /> by {agent.createdBy}
        </span>
      </Cell>
      <Cell>
        <StateOf agent={agent} />
      </Cell>
      <Cell>
        <span className="flex max-w-64 flex-wrap gap-1">
          {agent.tags.length === 0 ? (
            <span className="text-ink-muted">None</span>
          ) : (
            agent.tags.map((tag) => <Tag key={tag}>{tag}</Tag>)
          )}
        </span>
      </Cell>
      <Cell className="tabular-nums">
        {agent.inFlight} of {agent.maxInFlight}
      </Cell>
      <Cell className={wideOnly}>
        <span className="block text-sm">{agent.kinds.join(", ")}</span>
        {agent.connectors && (
          <span className="block text-sm text-ink-muted">
            {agent.connectors.length === 0 ? "no connectors" : agent.connectors.join(", ")}
          </span>
        )}
      </Cell>
      <Cell className={wideOnly}>
        <span className="text-sm text-ink-muted">
          {agent.agentVersion}
          {agent.protocolVersion === 0 && <span className="block">other system</span>}
        </span>
      </Cell>
      <RowMenu label={`Actions for agent ${agent.name}`}>
        <MenuItem onClick={() => void copyId()}>Copy agent id</MenuItem>
        {onRevoke && agent.status !== "revoked" && (
          <MenuItem danger onClick={onRevoke}>
            Revoke
          </MenuItem>
        )}
      </RowMenu>
    </tr>
  );
}

function StateOf({ agent }: { agent: ExecutionAgent }) {
  const { state, word } = agentMark(agent);
  return (
    <>
      <StatusMark state={state}>{agent.draining && agent.status === "online" ? "Draining" : word}</StatusMark>
      {agent.status !== "online" && (
        <span className="block text-sm text-ink-muted">
          {agent.revokedAt ? (
            <When at={agent.revokedAt} />
          ) : agent.lastSeenAt ? (
            <>
              last seen <When at={agent.lastSeenAt} />
            </>
          ) : (
            "never connected"
          )}
        </span>
      )}
      {agent.otherJournalSeenAt && !agent.revokedAt && (
        <span className="block max-w-xs text-sm text-degraded">
          Connected with two journals <When at={agent.otherJournalSeenAt} />: a second host uses its credentials,
          or its state directory was replaced. The newest connection gets new steps. Pair a second host as an agent
          of its own.
        </span>
      )}
    </>
  );
}
