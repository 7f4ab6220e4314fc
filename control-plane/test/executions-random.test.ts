// Everything that can happen to requests between dispatchers, gateways and agents, at random and many times: repeated
// dispatches at two replicas, lost offers, acceptances, refusals, results that come twice, late, from another agent or of an
// older delivery, connections that end and begin, journals that are lost, cancels, deadlines and revocations. Whatever happens,
// each request ends at most once, an accepted result stays, no delivery has two journals, and every agent is counted to have
// exactly what it has.

import type { ExecutionOffer } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { beforeAll, describe, expect, it, vi } from "vitest";
import {
  declinedOf,
  type ExecutionLab,
  type ExecutionReplica,
  eventOf,
  type LabAgent,
  lapse,
  openExecutionLab,
  resultOf,
  type StoredExecution,
} from "../../testkit/api/executions.ts";
import { withOrg } from "../src/database/connect.ts";
import { recountInFlight } from "../src/executions/recount.ts";
import { cancelRequest } from "../src/executions/transitions/cancel.ts";

let lab: ExecutionLab;
let replicas: ExecutionReplica[];

beforeAll(async () => {
  lab = await openExecutionLab();
  replicas = [lab.replica, await lab.newReplica()];
});

const pick = fc.nat();
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("dispatch" as const), wait: fc.boolean(), lost: fc.boolean(), pick }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("repeat" as const), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("accept" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("decline" as const), pick }) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant("result" as const),
      pick,
      times: fc.integer({ min: 1, max: 3 }),
      succeeded: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("forge" as const), pick, older: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("reconnect" as const), pick, holds: fc.boolean(), lost: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("disconnect" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("take" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("overdue" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("sweep" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const connectionOf = ({ id, sessionId, protocolVersion, journalId }: LabAgent) => ({
  agentId: id,
  sessionId,
  protocolVersion,
  journalId,
});

type Delivery = { agent: LabAgent; requestId: string; generation: number };
const ends = ["succeeded", "failed", "cancelled"];

class Drive {
  readonly orgId: string;
  readonly agents: LabAgent[];
  readonly requests: string[] = [];
  /** What agents got, in order. */
  readonly received: Delivery[] = [];
  /** How each request ended when it was first seen so. */
  readonly ended = new Map<string, string>();
  readonly accepted = new Map<string, string>();
  private readonly sent = new Map<string, string>();
  private readonly toOlder = new Map<string, number>();
  private turn = 0;

  constructor(orgId: string, agents: LabAgent[]) {
    this.orgId = orgId;
    this.agents = agents;
  }

  private get engine() {
    this.turn += 1;
    return (replicas[this.turn % replicas.length] as ExecutionReplica).engine;
  }

  private agent = (index: number) => this.agents[index % this.agents.length] as LabAgent;
  private of<Item>(items: readonly Item[], index: number): Item | undefined {
    return items[index % Math.max(1, items.length)];
  }

  async perform(step: Step): Promise<void> {
    switch (step.do) {
      case "dispatch": {
        const runId = uuidv7();
        this.requests.push(`${runId}:step:1`);
        return this.dispatch(runId, step.wait, step.lost);
      }
      case "repeat": {
        const requestId = this.of(this.requests, step.pick);
        if (requestId) await this.dispatch(requestId.split(":")[0] ?? "", false, false);
        return;
      }
      case "accept": {
        const delivery = this.of(this.received, step.pick);
        if (delivery)
          await this.report(eventOf("accepted", delivery.agent, delivery.requestId, delivery.generation));
        return;
      }
      case "decline": {
        const delivery = this.of(this.received, step.pick);
        if (delivery?.agent.protocolVersion)
          await this.report(declinedOf(delivery.agent, delivery.requestId, delivery.generation));
        return;
      }
      case "result":
        return this.result(step);
      case "forge": {
        const delivery = this.of(this.received, step.pick);
        if (!delivery) return;
        const other = this.agent(this.agents.indexOf(delivery.agent) + 1);
        const before = await lab.row(delivery.requestId);
        const forged = step.older
          ? resultOf(delivery.agent, delivery.requestId, before.generation + 1)
          : resultOf(other, delivery.requestId, before.agent_id === other.id ? before.generation + 1 : null);
        expect((await this.report(forged)).verdict).not.toBe("accepted");
        expect(await lab.row(delivery.requestId)).toMatchObject({
          reported: before.reported,
          output: before.output,
        });
        return;
      }
      case "reconnect": {
        const agent = this.agent(step.pick);
        const lost = step.lost && agent.protocolVersion > 0;
        await lab.connect(agent, lost ? { journalId: uuidv7() } : {});
        const its = this.received.filter((one) => one.agent === agent && agent.protocolVersion > 0);
        const holding =
          step.holds && !lost ? its.map(({ requestId, generation }) => ({ requestId, generation })) : [];
        const connection = connectionOf(agent);
        await this.engine.holds(connection, holding);
        const offers = await this.engine.takeWork(connection, {
          again: true,
          holding: holding.map(({ requestId }) => requestId),
        });
        for (const offer of offers)
          expect(holding.map(({ requestId }) => requestId)).not.toContain(offer.request_id);
        return this.receive(agent, offers);
      }
      case "disconnect":
        return lab.disconnect(this.agent(step.pick));
      case "take": {
        const agent = this.agent(step.pick);
        const connection = connectionOf(agent);
        return this.receive(agent, await this.engine.takeWork(connection, { again: false, holding: [] }));
      }
      case "cancel": {
        const requestId = this.of(this.requests, step.pick);
        if (!requestId) return;
        const { id } = await lab.row(requestId);
        const cancelled = await withOrg(lab.app, this.orgId, (tx) => cancelRequest(tx, id));
        if (cancelled) this.engine.cancelled(cancelled, this.orgId);
        return;
      }
      case "overdue": {
        const requestId = this.of(this.requests, step.pick);
        if (!requestId) return;
        const { status } = await lab.row(requestId);
        if (status === "pending") await lapse(lab.superuser, requestId, "wait_until");
        if (status === "dispatched" || status === "running") await lapse(lab.superuser, requestId, "deadline_at");
        return;
      }
      case "sweep":
        await this.engine.sweep();
        return;
    }
  }

  private async dispatch(runId: string, wait: boolean, lost: boolean): Promise<void> {
    const asked = { organizationId: this.orgId, runId, ...(wait ? { waitMs: 60_000 } : {}) };
    const verdict = await lab.dispatch(asked, { engine: this.engine });
    if (verdict.state !== "assigned" || !verdict.offer) return;
    const agent = this.agents.find(({ id }) => id === verdict.agent_id);
    if (!agent) throw new Error("given to an agent of another organization");
    this.receive(agent, [verdict.offer], { lost });
  }

  private report(event: Parameters<ExecutionLab["report"]>[0]) {
    return lab.report(event);
  }

  private async result({ pick: index, times, succeeded }: Extract<Step, { do: "result" }>): Promise<void> {
    const delivery = this.of(this.received, index);
    if (!delivery) return;
    const { agent, requestId, generation } = delivery;
    const output = { from: agent.id, generation };
    const result = succeeded
      ? { status: "succeeded" as const, output }
      : { status: "failed" as const, error: "no" };
    const named = agent.protocolVersion === 0 ? null : generation;
    const verdicts: string[] = [];
    for (let time = 0; time < times; time += 1)
      verdicts.push((await this.report(resultOf(agent, requestId, named, result))).verdict);
    // Unknown: the agent declined it, and it was dispatched anew since.
    const repeated = verdicts[0] === "unknown" ? ["unknown"] : ["duplicate", "late"];
    for (const verdict of verdicts.slice(1)) expect(repeated).toContain(verdict);
    if (verdicts[0] !== "accepted") return;
    expect(this.accepted.has(requestId), "a result is accepted once").toBe(false);
    const row = await lab.row(requestId);
    expect(row).toMatchObject({ agent_id: agent.id, generation, reported: true });
    this.accepted.set(requestId, JSON.stringify([row.status, row.output, row.error]));
  }

  private receive(agent: LabAgent, offers: readonly ExecutionOffer[], { lost = false } = {}): void {
    for (const { request_id: requestId, generation, agent_id, signature, journal_id } of offers) {
      expect([agent_id, journal_id]).toEqual([agent.id, agent.journalId]);
      expect(signature !== null).toBe(agent.protocolVersion > 0);
      const key = `${requestId} ${generation}`;
      const journal = `${agent.id} ${agent.journalId}`;
      expect(this.sent.get(key) ?? journal, "a delivery has one journal").toBe(journal);
      this.sent.set(key, journal);
      if (agent.protocolVersion === 0) {
        this.toOlder.set(requestId, (this.toOlder.get(requestId) ?? 0) + 1);
        expect(this.toOlder.get(requestId), "an agent of another system gets a request once").toBe(1);
      }
      if (!lost) this.received.push({ agent, requestId, generation });
    }
  }

  /** Everything that is left is overdue. True when nothing is; a placement may be under way meanwhile. */
  async endAll(): Promise<boolean> {
    for (const requestId of this.requests) {
      const { status } = await lab.row(requestId);
      if (status === "pending") await lapse(lab.superuser, requestId, "wait_until");
      if (status === "dispatched" || status === "running") await lapse(lab.superuser, requestId, "deadline_at");
    }
    await this.engine.sweep();
    const open = await lab.superuser`SELECT FROM executions WHERE org_id = ${this.orgId} AND finished_at IS NULL`;
    return open.length === 0;
  }

  /** After every step. */
  async check(): Promise<void> {
    expect(await lab.miscounted()).toEqual([]);
    const full = await lab.superuser`SELECT FROM execution_agents WHERE in_flight > max_in_flight`;
    expect(full).toHaveLength(0);
    const rows = await lab.superuser<(StoredExecution & { request_id: string })[]>`
      SELECT * FROM executions WHERE org_id = ${this.orgId}`;
    for (const { request_id, status, output, error } of rows) {
      const known = this.ended.get(request_id);
      const end = JSON.stringify([status, output, error]);
      if (known !== undefined) expect(end, "an end is an end").toBe(known);
      if (ends.includes(status)) this.ended.set(request_id, end);
      const accepted = this.accepted.get(request_id);
      if (accepted !== undefined) expect(end, "an accepted result stays").toBe(accepted);
    }
  }
}

describe("requests, whatever happens", () => {
  it("EXEC-02 end at most once, are with one journal at a time, and are counted exactly", async () => {
    const paths = { accepted: 0, ended: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 45 }), async (steps) => {
        const orgId = await lab.newOrg();
        const agents = await Promise.all(
          [1, 1, 0].map((protocolVersion) => {
            const journalId = protocolVersion === 0 ? null : uuidv7();
            return lab.newAgent({ orgId, protocolVersion, journalId, maxInFlight: 3 });
          }),
        );
        const drive = new Drive(orgId, agents);
        for (const one of steps) {
          await drive.perform(one);
          await drive.check();
        }
        for (const agent of agents) await lab.disconnect(agent);
        await vi.waitUntil(() => drive.endAll());
        await drive.check();
        expect(await recountInFlight(lab.system, { publish: () => undefined }, lab.log)).toEqual({ corrected: 0 });
        paths.accepted += drive.accepted.size;
        paths.ended += drive.ended.size;
      }),
      { numRuns: 40 },
    );
    // Not by chance: of several hundred steps, far more lead there.
    expect(paths.accepted).toBeGreaterThan(5);
    expect(paths.ended).toBeGreaterThan(paths.accepted);
  });
});
