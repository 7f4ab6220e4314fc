import { userStates } from "@holdfast/contracts/reasons/vocabulary";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noticeOf } from "./notice.ts";

const state = fc.constantFrom(...userStates);

describe("a notification to tenants", () => {
  it("DRIFT-13 is sent for every change while nothing is suspected, as before", () => {
    fc.assert(
      fc.property(state, state, (shown, next) => {
        const noticed = noticeOf({ shown, notified: null, next, braked: false });
        expect(noticed).toEqual({ send: shown !== next, notified: null });
      }),
    );
  });

  it("DRIFT-13 waits while the control plane is suspected, and is not sent when nothing is left to say", () => {
    const first = noticeOf({ shown: "normal", notified: null, next: "temporary", braked: true });
    expect(first).toEqual({ send: false, notified: "normal" });
    const worse = noticeOf({ shown: "temporary", ...first, next: "operator_action_required", braked: true });
    expect(worse).toEqual({ send: false, notified: "normal" });
    const back = { shown: "operator_action_required", ...worse, next: "normal" } as const;
    expect(noticeOf({ ...back, braked: true })).toEqual({ send: false, notified: null });
    expect(noticeOf({ ...back, braked: false })).toEqual({ send: false, notified: null });
  });

  it("DRIFT-13 of what needs security action never waits", () => {
    fc.assert(
      fc.property(state, fc.option(state), fc.boolean(), (shown, notified, braked) => {
        const { send } = noticeOf({ shown, notified, next: "security_action_required", braked });
        expect(send).toBe((notified ?? shown) !== "security_action_required");
      }),
    );
  });

  it("DRIFT-13 leaves tenants with the last state, whatever happens while it waits", () => {
    fc.assert(
      fc.property(state, fc.array(fc.tuple(state, fc.boolean()), { maxLength: 12 }), (start, changes) => {
        let [shown, known] = [start, start];
        let notified: typeof start | null = null;
        for (const [next, braked] of changes) {
          const noticed = noticeOf({ shown, notified, next, braked });
          if (noticed.send) known = next;
          ({ notified } = noticed);
          shown = next;
          expect(notified ?? shown).toBe(known);
        }
      }),
    );
  });
});
