import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Announced, type Candidate, dueEvent, GATHER_MS, HOLD_MS, planAnnouncements } from "./plan.ts";

const NOW = 10_000_000;
const one = (change: Partial<Candidate> = {}): Candidate => ({
  ...{ id: "i", orgId: "o", reason: "cert_untrusted_by_ingress", ofNode: true, isPart: false, qualifies: true },
  ...{ compared: true, openedAt: NOW - HOLD_MS, closedAt: null, announced: "nothing", ...change },
});
const announcedStates: Announced[] = ["nothing", "opened", "recovered"];
const booleans = [false, true];

describe("a message about one incident", () => {
  it("DRIFT-16 is due exactly when the incident opens and when it is over, in every combination", () => {
    for (const announced of announcedStates)
      for (const qualifies of booleans)
        for (const isPart of booleans)
          for (const compared of booleans)
            for (const ofNode of booleans)
              for (const closedAt of [null, NOW])
                for (const age of [0, HOLD_MS - 1, HOLD_MS]) {
                  const candidate = one({
                    announced,
                    qualifies,
                    isPart,
                    compared,
                    ofNode,
                    closedAt,
                    openedAt: NOW - age,
                  });
                  const isNews = qualifies && !isPart && compared;
                  const expected =
                    announced === "opened"
                      ? closedAt !== null && "incident.recovered"
                      : isNews && closedAt === null
                        ? (!ofNode || age === HOLD_MS) && "incident.opened"
                        : isNews && announced === "nothing" && "incident.recovered";
                  expect(dueEvent(candidate, NOW) ?? false, JSON.stringify(candidate)).toBe(expected);
                }
  });
});

describe("messages about many incidents", () => {
  const plan = (all: Candidate[], last?: number) => planAnnouncements(all, { now: NOW, lastQueuedAt: () => last });

  it("DRIFT-16 are one for the nodes of an organization with one reason, and one for each common cause", () => {
    const many = Array.from({ length: 1_000 }, (_, index) => one({ id: `n${index}` }));
    const others = [
      one({ id: "c1", ofNode: false }),
      one({ id: "c2", ofNode: false }),
      one({ id: "x", orgId: "p" }),
    ];
    expect(plan([...many, ...others]).map(({ orgId, incidents }) => [orgId, incidents.length])).toEqual([
      ["o", 1_000],
      ["o", 1],
      ["o", 1],
      ["p", 1],
    ]);
  });

  it("DRIFT-16 gather for a minute after the last one about the same reason; a common cause does not wait", () => {
    for (const [last, due] of [
      [NOW - GATHER_MS + 1, 0],
      [NOW - GATHER_MS, 1],
      [NOW + 1, 1],
    ] as const) {
      expect(plan([one()], last), String(last)).toHaveLength(due);
      expect(plan([one({ ofNode: false })], last)).toHaveLength(1);
    }
  });

  it("DRIFT-16 say everything once, whatever happens between turns", () => {
    const step = fc.record({
      open: fc.boolean(),
      qualifies: fc.boolean(),
      isPart: fc.boolean(),
      wait: fc.integer({ min: 1_000, max: 200_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let now = NOW;
        let last: number | undefined;
        let state = one({ openedAt: now });
        const sent: string[] = [];
        for (const { open, qualifies, isPart, wait } of steps) {
          now += wait;
          // An incident of a node that is over stays so.
          if (state.closedAt === null) state = { ...state, qualifies, isPart, closedAt: open ? null : now };
          for (const { event } of planAnnouncements([state], { now, lastQueuedAt: () => last })) {
            sent.push(event);
            last = now;
            state = { ...state, announced: event === "incident.opened" ? "opened" : "recovered" };
          }
          last = undefined;
        }
        expect([
          [],
          ["incident.opened"],
          ["incident.recovered"],
          ["incident.opened", "incident.recovered"],
        ]).toContainEqual(sent);
      }),
    );
  });
});
