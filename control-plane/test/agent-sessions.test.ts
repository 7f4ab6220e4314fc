// Several connections of one agent: which of them gets new work, and what is said when they have different journals.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { type ExecutionLab, type LabAgent, openExecutionLab } from "../../testkit/api/executions.ts";
import { selectAgents, toAgent } from "../src/agents/queries.ts";
import { type Touched, touchSessions } from "../src/agents/sessions.ts";
import { withOrg } from "../src/database/connect.ts";

let lab: ExecutionLab;
beforeAll(async () => {
  lab = await openExecutionLab();
});

type Session = { sessionId: string; journalId: string | null };
const sessionOf = ({ sessionId, journalId }: LabAgent): Session => ({ sessionId, journalId });

async function newAgent(journalId: string | null = uuidv7()): Promise<LabAgent> {
  return lab.newAgent({ orgId: await lab.newOrg(), journalId });
}
const touch = (agent: LabAgent, sessions: readonly Session[], draining = false) =>
  touchSessions(
    lab.system,
    lab.gatewayId,
    sessions.map(({ sessionId: session_id, journalId: journal_id }): Touched => {
      return { agent_id: agent.id, session_id, draining, journal_id };
    }),
    lab.replica.engine,
  );
const shown = async ({ orgId }: LabAgent) => {
  const [row] = await withOrg(lab.app, orgId, (tx) => selectAgents(tx, { staleMs: 60_000 }));
  if (!row) throw new Error("there is no agent");
  return toAgent(row);
};
const dispatched = async ({ orgId }: LabAgent) => {
  const verdict = await lab.dispatch({ organizationId: orgId });
  return verdict.state === "assigned" ? verdict.offer?.session_id : verdict.state;
};
const journalChanges = ({ id }: LabAgent) => lab.superuser<{ details: Record<string, unknown> }[]>`
  SELECT details FROM audit_events WHERE action = 'agent.journal_changed' AND target_id = ${id} ORDER BY id`;

describe("a connection that is opened again, because its gateway may have missed something", () => {
  it("EXEC-06 leaves a newer one the newest", async () => {
    const agent = await newAgent();
    const older = sessionOf(agent);
    await lab.connect(agent);
    const newer = sessionOf(agent);
    await lab.connect(agent, { ...older, again: true });
    expect(await dispatched(agent)).toBe(newer.sessionId);
  });

  it("EXEC-06 becomes the newest when the newer one is gone", async () => {
    const agent = await newAgent();
    const older = sessionOf(agent);
    await lab.connect(agent);
    await lab.superuser`
      UPDATE execution_agents SET session_seen_at = now() - interval '10 minutes' WHERE id = ${agent.id}`;
    await lab.connect(agent, { ...older, again: true });
    expect(await dispatched(agent)).toBe(older.sessionId);
  });

  it("EXEC-01 still drains", async () => {
    const agent = await newAgent();
    await touch(agent, [sessionOf(agent)], true);
    await lab.connect(agent, { ...sessionOf(agent), again: true, draining: true });
    expect(await shown(agent)).toMatchObject({ draining: true });
    expect(await dispatched(agent)).toBe("no_agent");
  });
});

describe("an agent with two journals", () => {
  it("EXEC-02 is in the audit when its journal is another one, and not for each connection", async () => {
    const agent = await newAgent();
    const first = agent.journalId;
    await lab.connect(agent);
    expect(await journalChanges(agent)).toEqual([]);
    const second = uuidv7();
    await lab.connect(agent, { journalId: second });
    await lab.disconnect(agent);
    await lab.connect(agent, { journalId: first });
    await lab.connect(agent, { journalId: null });
    expect(await journalChanges(agent)).toMatchObject([
      { details: { journal_id: second, earlier_journal_id: first, earlier_connection_open: true } },
      { details: { journal_id: first, earlier_journal_id: second, earlier_connection_open: false } },
    ]);
  });

  it("EXEC-02 is shown as long as both are connected, and only then", async () => {
    const agent = await newAgent();
    const first = sessionOf(agent);
    await lab.connect(agent);
    const same = sessionOf(agent);
    expect(await touch(agent, [first, same])).toEqual({ revoked: [], changed: [] });
    expect(await shown(agent)).toMatchObject({ otherJournalSeenAt: null });
    await lab.connect(agent, { journalId: uuidv7() });
    const other = sessionOf(agent);
    expect((await touch(agent, [same, other])).changed).toEqual([{ id: agent.id, orgId: agent.orgId }]);
    const { otherJournalSeenAt } = await shown(agent);
    expect(otherJournalSeenAt).not.toBeNull();
    expect((await touch(agent, [same, other])).changed, "pages are told once").toEqual([]);
    expect(await dispatched(agent), "the newest one gets new requests").toBe(other.sessionId);
    await lab.superuser`UPDATE execution_agents SET other_journal_seen_at = NULL WHERE id = ${agent.id}`;
    await touch(agent, [other]);
    expect(await shown(agent)).toMatchObject({ otherJournalSeenAt: null });
  });

  it("EXEC-02 is sent what waits by its older connection under that one's journal, when the newer one is gone", async () => {
    const agent = await newAgent();
    const first = sessionOf(agent);
    await lab.connect(agent, { journalId: uuidv7() });
    await lab.disconnect(agent);
    await touch(agent, [first]);
    const verdict = await lab.dispatch({ organizationId: agent.orgId });
    expect(verdict).toMatchObject({ offer: { session_id: first.sessionId, journal_id: first.journalId } });
    const [row] = await lab.superuser`SELECT journal_id FROM executions WHERE request_id = ${verdict.request_id}`;
    expect(row).toEqual({ journal_id: first.journalId });
  });
});

describe("a request that was sent to another journal of its agent", () => {
  const sentToAnother = async () => {
    const agent = await newAgent();
    const { request_id } = await lab.dispatch({ organizationId: agent.orgId });
    await lab.connect(agent, { journalId: uuidv7() });
    const connection = { ...agent, agentId: agent.id };
    expect(await lab.replica.engine.takeWork(connection, { again: true, holding: [] })).toEqual([]);
    return { agent, request_id };
  };
  const overdue = async (requestId: string) => {
    await lab.superuser`UPDATE executions SET deadline_at = now() WHERE request_id = ${requestId}`;
    await lab.replica.engine.sweep();
    return lab.row(requestId);
  };

  it("EXEC-02 ends at its deadline as AGENT_DISCONNECTED, with the reason", async () => {
    const { request_id } = await sentToAnother();
    expect(await overdue(request_id)).toMatchObject({
      ...{ status: "failed", error: "AGENT_DISCONNECTED" },
      output: { message: expect.stringContaining("another journal") },
    });
  });

  it("EXEC-02 is sent again to the one that has it, when that is back", async () => {
    const agent = await newAgent();
    const { journalId } = agent;
    const { request_id } = await lab.dispatch({ organizationId: agent.orgId });
    await lab.connect(agent, { journalId: uuidv7() });
    await lab.connect(agent, { journalId });
    const offers = await lab.replica.engine.takeWork(
      { ...agent, agentId: agent.id },
      { again: true, holding: [] },
    );
    expect(offers).toMatchObject([{ request_id, journal_id: journalId }]);
  });

  it("EXEC-02 ends as a timeout without that reason while the one that has it is connected", async () => {
    const agent = await newAgent();
    const { request_id } = await lab.dispatch({ organizationId: agent.orgId });
    expect(await overdue(request_id)).toMatchObject({ error: "NODE_EXECUTION_TIMEOUT", output: null });
  });
});
