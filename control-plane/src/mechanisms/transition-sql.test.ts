import { describe, expect, it } from "vitest";
import { caseOf, isOneOf, literal, statesWhere, statesWithExit } from "./transition-sql.ts";

type State = "new" | "busy" | "done";
const table: Record<State, Record<"start" | "finish", State | "refused">> = {
  new: { start: "busy", finish: "refused" },
  busy: { start: "busy", finish: "done" },
  done: { start: "refused", finish: "done" },
};
const targetOf = (outcome: State | "refused") => (outcome === "refused" ? undefined : outcome);

describe("a transition table", () => {
  it("names the states in which an event has an outcome", () => {
    expect(statesWhere(table, "finish", (outcome) => outcome === "done")).toEqual(["busy", "done"]);
    expect(statesWhere(table, "start", (outcome, state) => outcome !== state && outcome !== "refused")).toEqual([
      "new",
    ]);
  });

  it("names the states that an event leads out of; one that leads back to itself is no exit", () => {
    expect(statesWithExit(table, targetOf)).toEqual(["new", "busy"]);
  });
});

describe("its SQL", () => {
  it("compares with literals, which a partial index needs", () => {
    expect(isOneOf("t.status", ["new"]).text).toBe("t.status = 'new'");
    expect(isOneOf("t.status", ["new", "it's"]).text).toBe("t.status IN ('new', 'it''s')");
    expect(() => isOneOf("t.status", [])).toThrow("no state");
  });

  it("chooses by a column; without a case it is the rest", () => {
    expect(caseOf("e", [["start", "busy"]]).text).toBe("CASE e WHEN 'start' THEN 'busy' ELSE NULL END");
    const nested = caseOf("s", [["new", literal("a")]], literal("b"));
    expect(caseOf("e", [["start", nested]]).text).toBe(
      "CASE e WHEN 'start' THEN CASE s WHEN 'new' THEN 'a' ELSE 'b' END ELSE NULL END",
    );
    expect(caseOf("e", [], literal("c")).text).toBe("'c'");
  });
});
