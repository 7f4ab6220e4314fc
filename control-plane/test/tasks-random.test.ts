// Everything that can go wrong between the queue and the nodes, at random and many times: lost and
// repeated answers, late and doubled results, cancels, leases that run out, sweeps, agents that
// restart, claims that a crash of the database undid. Whatever happens, every task ends in exactly one
// way, an accepted result stays, and a task that must not run twice is not offered again once it was started. The node
// polls, or waits over a stream.

import { terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { Held, TaskOffer, Verdict } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { atOnce, ended, openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { systemActor } from "../src/audit/record.ts";
import type { PollResponse } from "../src/tasks/held-polls.ts";
import type { TaskStream } from "../src/tasks/held-streams.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let lab: TaskLab;
let replicas: Replica[];

beforeAll(async () => {
  lab = await openTaskLab();
  replicas = [await lab.newReplica(), await lab.newReplica()];
});

const types = ["test.repeat", "test.once", "test.order"] as const;

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("enqueue" as const), type: fc.constantFrom(...types) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("run" as const), type: fc.constantFrom(...types) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("poll" as const), room: fc.nat(3), lost: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("report" as const),
      pick: fc.nat(),
      outcome: fc.constantFrom("succeeded" as const, "failed" as const, "cancelled" as const),
      times: fc.integer({ min: 1, max: 3 }),
      remember: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("lapse" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("overdue" as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("sweep" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("undo_claims" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A node as the queue sees it: the tasks it holds, and all that it was ever offered. */
type Agent = { nodeId: string; held: Map<string, TaskOffer>; received: TaskOffer[] };
type History = {
  made: string[];
  accepted: Map<string, string>;
  /** How often each delivery of a task was new. */
  deliveries: Map<string, Set<number>>;
};

/** A stream as the agent sees it: what it was offered and has not looked at. */
type OpenStream = {
  replica: Replica;
  stream: TaskStream;
  offers: { offer: number; response: PollResponse }[];
  seen: number;
};

class Drive {
  readonly agent: Agent;
  readonly history: History = { made: [], accepted: new Map(), deliveries: new Map() };
  private turn = 0;
  private open: OpenStream | undefined;
  private readonly instanceId = uuidv7();
  private readonly link: "poll" | "stream";

  constructor(nodeId: string, link: "poll" | "stream") {
    this.agent = { nodeId, held: new Map(), received: [] };
    this.link = link;
  }

  /** Requests of one agent reach any replica; calls over a stream reach its own. */
  private get replica(): Replica {
    if (this.open) return this.open.replica;
    this.turn += 1;
    return replicas[this.turn % replicas.length] as Replica;
  }

  async perform(step: Step): Promise<void> {
    const { agent, history } = this;
    switch (step.do) {
      case "enqueue": {
        const task = await lab.enqueue(this.replica, { nodeId: agent.nodeId, type: step.type });
        history.made.push(task.id);
        return;
      }
      case "run": {
        const correlationId = uuidv7();
        const task = { nodeId: agent.nodeId, type: step.type, params: {}, by: systemActor("test"), correlationId };
        await this.replica.engine.run(task, { waitMs: 0 });
        history.made.push(await lab.idOf(correlationId));
        return;
      }
      case "poll":
        return this.poll(step);
      case "report":
        return this.report(step);
      case "cancel": {
        const id = history.made[step.pick % Math.max(1, history.made.length)];
        if (id) await lab.cancel(this.replica, id);
        return;
      }
      case "lapse":
        await lab.superuser`
          UPDATE tasks SET lease_until = now() - interval '1 second'
          WHERE node_id = ${agent.nodeId} AND status = 'dispatched'`;
        return;
      case "overdue": {
        const id = history.made[step.pick % Math.max(1, history.made.length)];
        if (id) await lab.superuser`UPDATE tasks SET expires_at = now() - interval '1 hour' WHERE id = ${id}`;
        return;
      }
      case "sweep":
        await sweepTasks(lab.system, this.replica.signals);
        return;
      case "restart":
        this.disconnect();
        agent.held.clear();
        return;
      case "undo_claims":
        // As a crash of the database does to claims that were not on the disk yet.
        await lab.superuser`
          UPDATE tasks SET status = 'queued', generation = generation - 1, lease_until = NULL
          WHERE node_id = ${agent.nodeId} AND status = 'dispatched' AND cancel_requested_at IS NULL`;
        return;
    }
  }

  private async poll({ room, lost }: { room: number; lost: boolean }): Promise<void> {
    const { agent } = this;
    const holding = [...agent.held.values()].map(({ task_id, generation }) => ({ task_id, generation }));
    if (this.link === "stream") return this.declare({ room, holding, lost });
    const answer = await this.replica.engine.wait(agent.nodeId, atOnce({ room, holding }));
    expect(answer.tasks.length).toBeLessThanOrEqual(room);
    this.receive(answer, { lost });
  }

  private async declare({ room, holding, lost }: { room: number; holding: Held[]; lost: boolean }): Promise<void> {
    this.open ??= this.connect();
    const { replica, stream, offers, seen } = this.open;
    stream.capacity({ room, holding, seen });
    await this.served(replica);
    for (const { offer, response } of offers.splice(0)) {
      this.receive(response, { lost });
      this.open.seen = offer;
    }
    if (lost) this.disconnect();
  }

  /** Resolves when the statements that were begun for the node before are done. */
  private served({ engine }: Replica): Promise<unknown> {
    return engine.renewLeases(this.agent.nodeId, [{ task_id: uuidv7(), generation: 1 }]);
  }

  private connect(): OpenStream {
    const { replica } = this;
    const offers: OpenStream["offers"] = [];
    const stream = replica.engine.attach(this.agent.nodeId, {
      instanceId: this.instanceId,
      send: (offer, response) => offers.push({ offer, response }),
      onSuperseded() {},
    });
    return { replica, stream, offers, seen: 0 };
  }

  private disconnect(): void {
    this.open?.stream.detach();
    this.open = undefined;
  }

  private receive(answer: PollResponse, { lost }: { lost: boolean }): void {
    const { agent } = this;
    for (const offer of answer.tasks) {
      expect(agent.held.has(offer.task_id), "what is held is not offered").toBe(false);
      const seen = this.history.deliveries.get(offer.task_id) ?? new Set();
      this.history.deliveries.set(offer.task_id, seen.add(offer.generation));
    }
    if (lost) return;
    for (const id of answer.cancel) agent.held.delete(id);
    for (const offer of answer.tasks) {
      agent.held.set(offer.task_id, offer);
      agent.received.push(offer);
    }
  }

  private async report(step: Extract<Step, { do: "report" }>): Promise<void> {
    const { agent } = this;
    const offer = agent.received[step.pick % Math.max(1, agent.received.length)];
    if (!offer) return;
    const { task_id, generation } = offer;
    const result = { done: step.pick % 2 === 0 };
    const report =
      step.outcome === "succeeded"
        ? succeeded(task_id, generation, result)
        : ended(task_id, generation, step.outcome);
    const posts = await Promise.all(
      Array.from({ length: step.times }, () => this.replica.engine.results(agent.nodeId, [report])),
    );
    if (!step.remember) agent.held.delete(task_id);
    // An agent that keeps a result has not heard the verdict: its connection is gone.
    if (step.remember) this.disconnect();
    else this.open?.stream.settled([task_id]);
    await this.judge(
      task_id,
      posts.flatMap((post) => post.map((one) => one.verdict)),
    );
  }

  private async judge(taskId: string, verdicts: Verdict[]): Promise<void> {
    const { accepted } = this.history;
    expect(verdicts).not.toContain("unknown");
    const now = verdicts.filter((verdict) => verdict === "accepted").length;
    expect(now, "accepted at most once, ever").toBeLessThanOrEqual(accepted.has(taskId) ? 0 : 1);
    if (now === 1) accepted.set(taskId, JSON.stringify(await lab.row(taskId)));
  }

  /** The agent goes on as a good one does, until nothing is left; then time goes by. */
  async settle(): Promise<void> {
    const { agent, history } = this;
    this.disconnect();
    await Promise.all(replicas.map((one) => this.served(one)));
    for (const task_id of [...agent.held.keys()]) {
      const { generation = 1 } = agent.held.get(task_id) ?? {};
      const [judged] = await this.replica.engine.results(agent.nodeId, [
        succeeded(task_id, generation, { done: true }),
      ]);
      agent.held.delete(task_id);
      if (judged) await this.judge(task_id, [judged.verdict]);
    }
    await lab.superuser`
      UPDATE tasks SET expires_at = now() - interval '1 day',
        lease_until = CASE WHEN status = 'dispatched' THEN now() END
      WHERE node_id = ${agent.nodeId} AND finished_at IS NULL`;
    await sweepTasks(lab.system, this.replica.signals);
    const rows = await Promise.all(history.made.map((id) => lab.row(id)));
    for (const row of rows) {
      expect(terminalStatuses.has(row.status), `${row.type} ended`).toBe(true);
      expect(row.reported, "ended by its node exactly when a result was accepted").toBe(
        history.accepted.has(row.id),
      );
      const stored = history.accepted.get(row.id);
      if (stored !== undefined) expect(comparable(JSON.parse(stored))).toEqual(comparable(row));
      const deliveries = history.deliveries.get(row.id)?.size ?? 0;
      if (row.type === "test.once") expect(deliveries, "one delivery only").toBeLessThanOrEqual(1);
    }
  }
}

/** Time goes by in the test; nothing else about a task may change once it has ended. */
function comparable(row: object): unknown {
  return JSON.parse(JSON.stringify({ ...row, expires_at: null }));
}

describe("whatever happens", () => {
  const links = ["poll", "stream"] as const;
  it.for(links)(
    "TASK-04 TASK-06 ends every task once, keeps accepted results, and offers nothing twice: by %s",
    async (link) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
          const drive = new Drive(await lab.newNode(), link);
          for (const one of steps) await drive.perform(one);
          await drive.settle();
        }),
        { numRuns: 60 },
      );
    },
  );
});
