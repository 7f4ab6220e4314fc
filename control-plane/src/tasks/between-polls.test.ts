import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type BetweenPolls, createBetweenPolls } from "./between-polls.ts";
import type { Delivered } from "./transitions/deliver.ts";

let undelivered: string[];
let nodes: BetweenPolls;

beforeEach(() => {
  vi.useFakeTimers();
  undelivered = [];
  nodes = createBetweenPolls({ onUndelivered: (nodeId) => undelivered.push(nodeId) });
});
afterEach(() => {
  vi.useRealTimers();
});

const task = (task_id: string) => ({ node_id: "n", task_id, stop: false }) as Delivered;
const left = (offered: string[], mayHaveMore = false) =>
  nodes.begin("n", { instanceId: "i", offered: new Set(offered), mayHaveMore });
const returns = ({ instanceId = "i", room = 4, holding = [] as { task_id: string; generation: number }[] } = {}) =>
  nodes.end({ instanceId, asking: { nodeId: "n", room, holding } })?.map(({ task_id }) => task_id);

describe("a node between two polls", () => {
  it("TASK-02 gets what was kept for it, once", () => {
    left([]);
    expect(nodes.keep("n", [task("a"), task("b")])).toBe(true);
    expect(returns()).toEqual(["a", "b"]);
    expect(returns()).toBeUndefined();
    vi.advanceTimersByTime(1_000);
    expect(undelivered).toEqual([]);
  });

  it("TASK-02 is not offered a task twice that its last poll got by a statement of its own", () => {
    left(["a"]);
    nodes.keep("n", [task("a"), task("b")]);
    nodes.resultAccepted("n", "a");
    expect(returns()).toEqual(["b"]);
  });

  it.each([
    ["it has not reported a result", () => left(["a"]), {}],
    ["more may wait in the database", () => left([], true), {}],
    ["it was woken", () => [left([]), nodes.mayHaveMore("n")], {}],
    ["it holds a task", () => left([]), { holding: [{ task_id: "a", generation: 1 }] }],
    ["its agent was restarted", () => left([]), { instanceId: "another" }],
    ["it has no room for what was kept", () => [left([]), nodes.keep("n", [task("a"), task("b")])], { room: 1 }],
    ["it was never here", () => undefined, {}],
  ])("TASK-02 asks the database when %s", (_, before, poll) => {
    before();
    expect(returns(poll)).toBeUndefined();
  });

  it("TASK-02 leaves what it does not fetch in time to others", () => {
    left([]);
    nodes.keep("n", [task("a")]);
    vi.advanceTimersByTime(99);
    expect(undelivered).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(undelivered).toEqual(["n"]);
    expect(nodes.keep("n", [task("b")])).toBe(false);
  });

  it("is offered tasks in advance for as long as it is expected, up to one batch", () => {
    expect(nodes.roomOf("n")).toBe(0);
    left([]);
    const room = nodes.roomOf("n");
    expect(room).toBeGreaterThan(1);
    nodes.keep("n", [task("a")]);
    expect(nodes.roomOf("n")).toBe(room - 1);
    left([]);
    vi.advanceTimersByTime(100);
    expect(nodes.roomOf("n")).toBe(0);
  });

  it("TASK-02 leaves what was kept to others when the process stops", () => {
    left([]);
    nodes.keep("n", [task("a")]);
    nodes.stop();
    expect(undelivered).toEqual(["n"]);
  });
});
