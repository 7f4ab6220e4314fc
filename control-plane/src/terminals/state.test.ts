import { terminalStates } from "@holdfast/contracts/endpoints/terminals";
import { describe, expect, it } from "vitest";
import { hasEnded, terminalOutcome, terminalTransitions } from "./state.ts";

describe("the life of a terminal", () => {
  it("TERM-08 leads from every state by every event to the state that the table says", () => {
    const table = terminalStates.map((state) =>
      terminalTransitions.map((transition) => terminalOutcome(state, transition)).join(" "),
    );
    expect(Object.fromEntries(terminalStates.map((state, at) => [state, table[at]]))).toEqual({
      opening: "open failed failed closed closed",
      open: "open open failed closed open",
      closed: "closed closed closed closed closed",
      failed: "failed failed failed failed failed",
    });
  });

  it.for(terminalStates.filter(hasEnded))("TERM-08 has no way out of %s", (state) => {
    for (const transition of terminalTransitions) expect(terminalOutcome(state, transition)).toBe(state);
  });

  it("TERM-08 has one way into open: a shell that is there", () => {
    const ways = terminalTransitions.filter((one) => terminalOutcome("opening", one) === "open");
    expect(ways).toEqual(["ready"]);
  });
});
