import { describe, expect, it } from "vitest";
import { actions } from "./actions.ts";
import { nextActionIds } from "./vocabulary.ts";

describe("the action for a cause", () => {
  it("DASH-08 exists for every next action, and says what it does and what it does not", () => {
    expect(Object.keys(actions).toSorted()).toEqual([...nextActionIds].toSorted());
    for (const { title, does, doesNot } of Object.values(actions)) {
      expect(title).toMatch(/^[A-Z][^.]{2,44}$/);
      for (const list of [does, doesNot]) expect(list.length).toBeGreaterThan(0);
      for (const sentence of [...does, ...doesNot]) expect(sentence).toMatch(/^[A-Z].*\.$/);
    }
  });

  it("DASH-08 is a button where the product can do it, with the command for the same", () => {
    const buttons = nextActionIds.flatMap((id) => {
      const { way } = actions[id];
      return way.by === "button" ? [[id, way.button, way.command]] : [];
    });
    expect(buttons).toEqual([
      ["re_enroll", "new_identity", "holdfast node token create --node <id>"],
      ["rebootstrap", "bundle", "holdfast node bundle create <id>"],
      ["reactivate", "reactivate", "holdfast node reactivate <id>"],
      ["replay_task", "replay_task", "holdfast task replay <task>"],
    ]);
  });
});
