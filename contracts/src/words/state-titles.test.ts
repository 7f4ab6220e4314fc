import { describe, expect, it } from "vitest";
import { terminalStateShown, terminalStateTitles } from "./state-titles.ts";

describe("the state of a terminal that people read", () => {
  it.for([
    ["opening", { state: "opening", attached: false, ending: false }],
    ["open", { state: "open", attached: true, ending: false }],
    ["detached", { state: "open", attached: false, ending: false }],
    ["ending", { state: "open", attached: true, ending: true }],
    ["ending", { state: "opening", attached: false, ending: true }],
    ["closed", { state: "closed", attached: false, ending: false }],
    ["failed", { state: "failed", attached: false, ending: false }],
  ] as const)("is %s", ([shown, terminal]) => {
    expect(terminalStateShown(terminal)).toBe(shown);
    expect(terminalStateTitles[shown].title).not.toBe("");
  });
});
