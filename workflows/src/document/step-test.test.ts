import { describe, expect, it } from "vitest";
import { readWorkflow } from "./read.ts";
import { stepTestOf } from "./step-test.ts";
import { writeWorkflow } from "./write.ts";

const source = `
version: 1
nodes:
  first: { type: connector.action, connector: echo, action: echo, input: 1 }
  check: { type: condition, after: [first], if: nodes.first.output.n > input.least }
  ask: { type: wait, approval: {}, after: [check.true] }
  tell: { type: http.request, after: [ask], url: "https://example.com/\${{ nodes.first.output.n }}", body: "\${{ nodes.ask.output.by }}" }
`;
const read = readWorkflow(source);
if (!read.ok) throw new Error("invalid");
const { document } = read;

describe("FLOW-01 the test of a step", () => {
  it("is that step alone, after stand-ins for what it reads", () => {
    const test = stepTestOf(document, "tell", { first: { n: 7 }, ask: { by: "me" }, check: true });
    if (typeof test === "string") throw new Error(test);
    expect(Object.keys(test.nodes)).toEqual(["first", "ask", "tell"]);
    expect(test.nodes["tell"]).toEqual({ ...document.nodes["tell"], after: ["first", "ask"] });
    expect(readWorkflow(writeWorkflow(test, "yaml"))).toMatchObject({ ok: true });
  });

  it("takes given outputs as they are, also what looks like an expression", () => {
    const test = stepTestOf(document, "check", { first: { text: "a ${{ nodes.nobody }}" } });
    expect(test).toMatchObject({ nodes: { first: { input: { text: "a $${{ nodes.nobody }}" } } } });
    expect(readWorkflow(JSON.stringify(test))).toMatchObject({ ok: true });
  });

  it.each([
    ["nothing", "There is no step nothing."],
    ["ask", "ask is wait, which does nothing that can be tested."],
    ["tell", "tell reads the output of ask, and none is given for it."],
  ])("of %s is refused: %s", (id, why) => {
    expect(stepTestOf(document, id, { first: {} })).toBe(why);
  });
});
