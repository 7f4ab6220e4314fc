// Runs: every cell of the table of nodes, the rule of edges, and random documents that always end in one way.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import { decide, turnBy } from "./decide.ts";
import type { NodeEvent, RunEvent } from "./events.ts";
import { afterFailure, effectOf } from "./retry.ts";
import { simulate } from "./simulate.ts";
import { applyEvent, ImpossibleEvent, type NodeStatus, type RunState, rebuild } from "./state.ts";

const failure = { code: "x", message: "y" };
const step = (after?: string[], more: object = {}): Node => ({
  ...{ type: "connector.action", connector: "echo", action: "echo" },
  ...(after ? { after } : {}),
  ...more,
});
const documentOf = (nodes: Record<string, Node>): WorkflowDocument => ({ version: "1", nodes });

/** How a node gets into each state. */
const ways: Record<NodeStatus, NodeEvent[]> = {
  pending: [],
  started: [{ type: "node_started", node: "a", attempt: 1, input: null }],
  dispatched: [
    { type: "node_started", node: "a", attempt: 1, input: null },
    { type: "node_dispatched", node: "a", attempt: 1, requestId: "r:a:1" },
  ],
  waiting: [
    { type: "node_started", node: "a", attempt: 1, input: null },
    { type: "node_waiting", node: "a", attempt: 1, until: null },
  ],
  retrying: [
    { type: "node_started", node: "a", attempt: 1, input: null },
    { type: "node_retried", node: "a", attempt: 1, failure, notBefore: "2026-01-01T00:00:00.000Z" },
  ],
  succeeded: [
    { type: "node_started", node: "a", attempt: 1, input: null },
    { type: "node_succeeded", node: "a", attempt: 1, output: 1 },
  ],
  failed: [
    { type: "node_started", node: "a", attempt: 1, input: null },
    { type: "node_failed", node: "a", attempt: 1, failure },
  ],
  skipped: [{ type: "node_skipped", node: "a" }],
};
const eventsAt = (attempt: number): NodeEvent[] => [
  { type: "node_started", node: "a", attempt, input: null },
  { type: "node_dispatched", node: "a", attempt, requestId: "r" },
  { type: "node_waiting", node: "a", attempt, until: null },
  { type: "node_succeeded", node: "a", attempt, output: null },
  { type: "node_failed", node: "a", attempt, failure },
  { type: "node_retried", node: "a", attempt, failure, notBefore: "2026-01-01T00:00:00.000Z" },
  { type: "node_skipped", node: "a" },
];

/** Written out, so that a change of the table is a decision made twice. */
const possible: Record<NodeStatus, Partial<Record<NodeEvent["type"], NodeStatus>>> = {
  pending: { node_started: "started", node_skipped: "skipped" },
  started: {
    ...{ node_dispatched: "dispatched", node_waiting: "waiting", node_succeeded: "succeeded" },
    ...{ node_failed: "failed", node_retried: "retrying" },
  },
  dispatched: { node_succeeded: "succeeded", node_failed: "failed", node_retried: "retrying" },
  waiting: { node_succeeded: "succeeded", node_failed: "failed", node_skipped: "skipped" },
  retrying: { node_started: "started", node_skipped: "skipped" },
  succeeded: {},
  failed: {},
  skipped: {},
};

describe("FLOW-02 the state of a run", () => {
  const document = documentOf({ a: step() });
  const cells = (Object.keys(ways) as NodeStatus[]).flatMap((status) =>
    eventsAt(1).map(({ type }) => ({ status, type, expected: possible[status][type] ?? "impossible" })),
  );

  it.for(cells)("of a node that is $status after $type: $expected", ({ status, type, expected }) => {
    const before = rebuild(document, ways[status]);
    const event = eventsAt(status === "retrying" ? 2 : 1).find((one) => one.type === type) as NodeEvent;
    const after = () => applyEvent(before, event).nodes["a"]?.status;
    if (expected === "impossible") expect(after).toThrow(ImpossibleEvent);
    else expect(after()).toBe(expected);
  });

  it.for((Object.keys(ways) as NodeStatus[]).filter((status) => status !== "skipped"))(
    "refuses what belongs to another attempt of a node that is %s",
    (status) => {
      const before = rebuild(document, ways[status]);
      for (const event of eventsAt(7).filter(({ type }) => type !== "node_skipped")) {
        expect(() => applyEvent(before, event)).toThrow(ImpossibleEvent);
      }
    },
  );

  it("does not change after the run has ended, and knows only its own nodes", () => {
    const ended = rebuild(document, [{ type: "run_cancelled" }]);
    for (const event of [...eventsAt(1), { type: "run_cancelled" } satisfies RunEvent]) {
      expect(() => applyEvent(ended, event)).toThrow(ImpossibleEvent);
    }
    expect(() => rebuild(document, [{ type: "node_skipped", node: "b" }])).toThrow(ImpossibleEvent);
  });
});

describe("FLOW-01 the rule of edges", () => {
  const all: Node = { type: "join", mode: "all" };
  const any: Node = { type: "join", mode: "any" };
  it.each<[string, Node, (boolean | "undecided")[], string]>([
    ["a node without edges", step(), [], "start"],
    ["a node with one taken edge", step(), [true], "start"],
    ["a node with no taken edge", step(), [false, false], "skip"],
    ["a node where branches meet", step(), [true, false], "start"],
    ["a node with an open edge", step(), [true, "undecided"], "later"],
    ["a join of all, all taken", all, [true, true], "start"],
    ["a join of all, one open", all, [true, "undecided"], "later"],
    ["a join of all, one not taken", all, ["undecided", false], "skip"],
    ["a join of any, one taken", any, ["undecided", true], "start"],
    ["a join of any, none yet", any, ["undecided", false], "later"],
    ["a join of any, none", any, [false, false], "skip"],
  ])("decides %s", (_, node, edges, expected) => {
    expect(turnBy(node, edges)).toBe(expected);
  });

  it("stops what is not running when a failure has no edge, and waits for what runs", () => {
    const document = documentOf({ a: step(), b: step(), c: step(["b"]), w: { type: "wait", event: "x" } });
    const events: RunEvent[] = [
      { type: "node_started", node: "a", attempt: 1, input: null },
      { type: "node_started", node: "b", attempt: 1, input: null },
      { type: "node_started", node: "w", attempt: 1, input: null },
      { type: "node_waiting", node: "w", attempt: 1, until: null },
      { type: "node_failed", node: "a", attempt: 1, failure },
    ];
    expect(decide(document, rebuild(document, events))).toEqual([
      { do: "skip", node: "c" },
      { do: "skip", node: "w" },
    ]);
    events.push({ type: "node_skipped", node: "c" }, { type: "node_skipped", node: "w" });
    expect(decide(document, rebuild(document, events))).toEqual([]);
    events.push({ type: "node_succeeded", node: "b", attempt: 1, output: null });
    expect(decide(document, rebuild(document, events))).toEqual([
      { do: "end", as: "failed", failure: { code: "x", message: "a: y" } },
    ]);
  });

  it("counts a wait that was given up, so that its answer is not that of the next one", () => {
    const ask: Node = { type: "wait", approval: {} };
    const state = rebuild({ version: "1", nodes: { ask } }, [
      { type: "run_started", input: {} },
      { type: "node_started", node: "ask", attempt: 1, input: {} },
      { type: "node_waiting", node: "ask", attempt: 1, until: null },
      { type: "node_skipped", node: "ask" },
    ]);
    expect(state.nodes["ask"]).toEqual({ status: "skipped", attempt: 2 });
  });

  it("cancels in the same way", () => {
    const document = documentOf({ a: step(), b: step(["a"]) });
    const state = rebuild(document, [{ type: "run_cancel_requested" }]);
    expect(decide(document, state).map((one) => one.do)).toEqual(["skip", "skip"]);
    const skipped = rebuild(document, [
      { type: "run_cancel_requested" },
      { type: "node_skipped", node: "a" },
      { type: "node_skipped", node: "b" },
    ]);
    expect(decide(document, skipped)).toEqual([{ do: "end", as: "cancelled" }]);
  });
});

describe("FLOW-04 retries", () => {
  const now = new Date("2026-01-01T00:00:00.000Z");
  const failed = { node: "a", attempt: 1, failure, outcomeKnown: true };
  const delayOf = (retry: object, attempt: number, random: number) => {
    const event = afterFailure(step(undefined, { retry }), { ...failed, attempt }, { now, random });
    return event.type === "node_retried" ? Date.parse(event.notBefore) - now.getTime() : "failed";
  };

  it("wait longer each time, up to a limit, with a random share", () => {
    const retry = { attempts: 5, delay: "1s", factor: 3, most: "10s", jitter: 0.5 };
    expect([1, 2, 3, 4, 5].map((attempt) => delayOf(retry, attempt, 0))).toEqual([
      1000,
      3000,
      9000,
      10_000,
      "failed",
    ]);
    expect(delayOf(retry, 2, 0.5)).toBe(2250);
  });

  it("FLOW-04 do not repeat what would fail again, and wait as long as a service asks for", () => {
    const node = step(undefined, { retry: { attempts: 3, delay: "1s", jitter: 0 } });
    const after = (more: object) => afterFailure(node, { ...failed, ...more }, { now, random: 0 });
    expect(after({ retryable: false }).type).toBe("node_failed");
    expect(after({ retryable: true, retryAfterMs: 7_000 })).toMatchObject({
      notBefore: new Date(now.getTime() + 7_000).toISOString(),
    });
    expect(after({ retryAfterMs: 10 })).toMatchObject({
      notBefore: new Date(now.getTime() + 1_000).toISOString(),
    });
  });

  it("do not repeat a step that may have had its effect, unless it is idempotent", () => {
    const unknown = { ...failed, outcomeKnown: false };
    const retry = { attempts: 3 };
    const typeOf = (more: object) =>
      afterFailure(step(undefined, { retry, ...more }), unknown, { now, random: 0 }).type;
    expect(typeOf({ effect: "at-most-once" })).toBe("node_failed");
    expect(typeOf({ connector: "github", action: "issue.create" })).toBe("node_failed");
    expect(typeOf({ connector: "github", action: "status.create" })).toBe("node_retried");
    expect(typeOf({ connector: "of-an-agent", action: "toString" })).toBe("node_failed");
    expect(typeOf({ effect: "idempotent" })).toBe("node_retried");
    expect(effectOf({ type: "http.request", url: "x" })).toBe("idempotent");
    expect(effectOf({ type: "http.request", url: "x", method: "POST" })).toBe("at-most-once");
  });
});

/** Conditions and steps in any acyclic order, some of which fail. */
const scenes = fc
  .array(
    fc.tuple(
      fc.constantFrom("step", "condition", "join", "any"),
      fc.array(fc.nat(), { maxLength: 3 }),
      fc.boolean(),
    ),
    {
      minLength: 1,
      maxLength: 10,
    },
  )
  .map((rows) => {
    const portOf = (source: number, pick: number) => {
      const kind = rows[source]?.[0];
      if (kind === "condition") return pick % 2 === 0 ? `n${source}.true` : `n${source}.false`;
      return kind === "step" && pick % 3 === 0 ? `n${source}.failed` : `n${source}`;
    };
    const entries = rows.map(([kind, picks], index): [string, Node] => {
      const after = index === 0 ? [] : [...new Set(picks.map((pick) => portOf(pick % index, pick)))];
      const edges = after.length > 0 ? { after } : {};
      if (kind === "condition") return [`n${index}`, { type: "condition", if: "true", ...edges }];
      if (kind === "step")
        return [`n${index}`, step(after.length > 0 ? after : undefined, { retry: { attempts: 2 } })];
      return [`n${index}`, { type: "join", mode: kind === "any" ? "any" : "all", ...edges }];
    });
    const failing = new Set(
      rows.flatMap(([kind, , fails], index) => (fails && kind === "step" ? [`n${index}`] : [])),
    );
    return { document: documentOf(Object.fromEntries(entries)), failing };
  });

describe("FLOW-02 any run", () => {
  /** Conditions alternate, so that both ways are taken. */
  const evaluate = async (_: string, context: object) => Object.keys((context as RunState).nodes).length % 2 === 0;

  it("ends once, with every node over, and its events rebuild its state at every moment", async () => {
    await fc.assert(
      fc.asyncProperty(scenes, async ({ document, failing }) => {
        const given = { input: {}, outputs: {}, failing, now: new Date(0) };
        const { events, state } = await simulate(document, given, evaluate);
        expect(rebuild(document, events)).toEqual(state);
        expect(events.filter(({ type }) => /^run_(succeeded|failed|cancelled)$/.test(type))).toHaveLength(1);
        const open = Object.values(state.nodes).filter(
          ({ status }) => !/^(succeeded|failed|skipped)$/.test(status),
        );
        expect(open).toEqual([]);
        const isHandled = (id: string) =>
          Object.values(document.nodes).some((node) => node.after?.includes(`${id}.failed`));
        const unhandled = Object.entries(state.nodes).some(
          ([id, node]) => node.status === "failed" && !isHandled(id),
        );
        expect(state.status).toBe(unhandled ? "failed" : "succeeded");
        // Asked again after every event, it never decides to start what has started, nor to end what has not.
        for (const [index] of events.entries()) {
          const then = rebuild(document, events.slice(0, index + 1));
          for (const decision of decide(document, then)) {
            if (decision.do === "start") expect(then.nodes[decision.node]?.status).toBe("pending");
          }
        }
      }),
    );
  });

  it("gives each node the values of those before it, as they are and within texts", async () => {
    const document = documentOf({
      first: step(),
      second: step(["first"], {
        input: { whole: "${{ nodes.first.output }}", text: "got ${{ nodes.first.output.n }}!" },
      }),
    });
    const values: Record<string, unknown> = { " nodes.first.output ": { n: 7 }, " nodes.first.output.n ": 7 };
    const given = { input: {}, outputs: { first: { n: 7 } }, failing: new Set<string>(), now: new Date(0) };
    const { events, state } = await simulate(document, given, async (expression) => values[expression]);
    const started = events.find((event) => event.type === "node_started" && event.node === "second");
    expect(started).toMatchObject({ input: { input: { whole: { n: 7 }, text: "got 7!" } } });
    expect(state.output).toEqual({ second: null });
  });
});
