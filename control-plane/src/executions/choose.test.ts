import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Candidate, chooseAgent, explainNotChosen, type Wanted, whyNot } from "./choose.ts";
import { selections } from "./settings.ts";

const names = ["a", "b", "c"];
const someOf = (values: string[]) => fc.subarray(values);

const candidate: fc.Arbitrary<Candidate> = fc.record({
  id: fc.uuid(),
  name: fc.constant("host"),
  sessionId: fc.option(fc.uuid(), { freq: 4 }),
  gatewayId: fc.constant(null),
  journalId: fc.constant(null),
  protocolVersion: fc.constantFrom(0, 1),
  draining: fc.boolean(),
  kinds: someOf(["agent.execute", "connector.action"]),
  connectors: fc.option(someOf(names), { freq: 2 }),
  tags: someOf(["east", "group:alpha"]),
  maxInFlight: fc.integer({ min: 1, max: 4 }),
  inFlight: fc.integer({ min: 0, max: 5 }),
  lastDispatchedAt: fc.integer({ min: 0, max: 3 }),
});
const agents = fc.uniqueArray(candidate, { maxLength: 8, selector: ({ id }) => id });
const wanted: fc.Arbitrary<Wanted> = fc.record({
  kind: fc.constantFrom("agent.execute" as const, "connector.action" as const),
  connector: fc.option(fc.constantFrom(...names)),
  selectorAgentId: fc.constant(null),
  selectorTag: fc.option(fc.constantFrom("east", "group:alpha", "west")),
  declinedBy: fc.constant([]),
});
const anyRequest = fc
  .tuple(agents, wanted, fc.boolean(), fc.boolean(), fc.constantFrom(...selections))
  .map(([all, request, named, declined, selection]) => {
    const [first] = all;
    const asked: Wanted = {
      ...request,
      selectorAgentId: named && first ? first.id : null,
      declinedBy: declined && first ? [first.id] : [],
    };
    return { all, asked, selection };
  });

describe("the chosen agent", () => {
  it("EXEC-03 can run the request: kind, connector, tag, agent id, room, connected and not draining", () => {
    fc.assert(
      fc.property(anyRequest, ({ all, asked, selection }) => {
        const chosen = chooseAgent(all, asked, selection);
        if (!chosen) return;
        expect(chosen.kinds).toContain(asked.kind);
        if (asked.connector !== null && chosen.connectors !== null)
          expect(chosen.connectors).toContain(asked.connector);
        if (asked.selectorTag !== null) expect(chosen.tags).toContain(asked.selectorTag);
        if (asked.selectorAgentId !== null) expect(chosen.id).toBe(asked.selectorAgentId);
        expect(asked.declinedBy).not.toContain(chosen.id);
        expect(chosen.sessionId).not.toBeNull();
        expect(chosen.draining).toBe(false);
        expect(chosen.inFlight).toBeLessThan(chosen.maxInFlight);
      }),
    );
  });

  it("EXEC-03 is found whenever one can take the request, and each other agent has a reason", () => {
    fc.assert(
      fc.property(anyRequest, ({ all, asked, selection }) => {
        const able = all.filter((agent) => whyNot(agent, asked) === undefined);
        expect(chooseAgent(all, asked, selection) === undefined).toBe(able.length === 0);
        const explained = explainNotChosen(all, asked);
        expect(explained.map(({ agent_id }) => agent_id)).toEqual(
          all.filter((agent) => !able.includes(agent)).map(({ id }) => id),
        );
        for (const { message } of explained) expect(message).toMatch(/\.$/);
      }),
    );
  });

  it("EXEC-03 has the fewest in flight, and of these the least recent; in turn, the least recent of all", () => {
    fc.assert(
      fc.property(anyRequest, ({ all, asked, selection }) => {
        const chosen = chooseAgent(all, asked, selection);
        for (const other of all.filter((agent) => whyNot(agent, asked) === undefined)) {
          if (!chosen) throw new Error("one can take it");
          const [a, b] = selection === "round_robin" ? [0, 0] : [chosen.inFlight, other.inFlight];
          expect(a).toBeLessThanOrEqual(b);
          if (a === b) expect(chosen.lastDispatchedAt).toBeLessThanOrEqual(other.lastDispatchedAt);
        }
      }),
    );
  });

  it("EXEC-03 does not depend on the order in which agents are read", () => {
    fc.assert(
      fc.property(anyRequest, ({ all, asked, selection }) => {
        expect(chooseAgent(all.toReversed(), asked, selection)).toBe(chooseAgent(all, asked, selection));
      }),
    );
  });

  it("EXEC-03 takes turns over all agents, whatever they have in flight", () => {
    const all = ["a", "b", "c"].map((id, index) => agent({ id, inFlight: index, maxInFlight: 100 }));
    const turns: string[] = [];
    for (let time = 1; time <= 6; time += 1) {
      const chosen = chooseAgent(all, echo, "round_robin");
      if (!chosen) throw new Error("all of them can take it");
      Object.assign(chosen, { lastDispatchedAt: time, inFlight: chosen.inFlight + 1 });
      turns.push(chosen.id);
    }
    expect(turns).toEqual(["a", "b", "c", "a", "b", "c"]);
  });
});

const agent = (changes: Partial<Candidate>): Candidate => ({
  ...{
    id: "a",
    name: "host",
    sessionId: "s",
    gatewayId: "g",
    journalId: null,
    protocolVersion: 1,
    draining: false,
  },
  ...{ kinds: ["agent.execute", "connector.action"], connectors: null, tags: [], maxInFlight: 10, inFlight: 0 },
  ...{ lastDispatchedAt: 0, ...changes },
});
const echo: Wanted = {
  ...{ kind: "agent.execute", connector: null, selectorAgentId: null, selectorTag: null, declinedBy: [] },
};

describe("the reason why an agent was not chosen", () => {
  it.each<[string, Partial<Candidate>, Partial<Wanted>, string]>([
    ["other_agent", {}, { selectorAgentId: "b" }, "The request names another agent."],
    ["tag_missing", { tags: ["west"] }, { selectorTag: "east" }, "It does not have the tag east. Its tags: west."],
    ["kind_missing", { kinds: [] }, {}, "It does not run agent.execute. It runs: none."],
    [
      "connector_missing",
      { connectors: ["github"] },
      { kind: "connector.action", connector: "jira" },
      "It does not have the connector jira. Its connectors: github.",
    ],
    ["declined", {}, { declinedBy: ["a"] }, "It declined this request."],
    ["offline", { sessionId: null }, {}, "It is not connected. Check the agent on its host."],
    ["draining", { draining: true }, {}, "It is draining and takes no new work."],
    ["full", { inFlight: 10 }, {}, "It has 10 requests in flight, of at most 10."],
    // What waiting does not change is said first.
    [
      "tag_missing",
      { sessionId: null, draining: true },
      { selectorTag: "east" },
      "It does not have the tag east. Its tags: none.",
    ],
  ])("EXEC-03 is %s", (reason, of, asked, message) => {
    expect(explainNotChosen([agent(of)], { ...echo, ...asked })).toEqual([
      { agent_id: "a", name: "host", reason, message },
    ]);
  });

  it("EXEC-03 is given for a hundred agents at most", () => {
    const many = Array.from({ length: 5_000 }, (_, index) => agent({ id: String(index), draining: true }));
    expect(explainNotChosen(many, echo)).toHaveLength(100);
  });
});
