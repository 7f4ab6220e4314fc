// What expressions may use.

import { describe, expect, it } from "vitest";
import type { WorkflowDocument } from "../document/schema.ts";
import { checkExpressions } from "./expressions.ts";

function found(template: string): string[] {
  const document: WorkflowDocument = {
    version: "1",
    nodes: {
      first: { type: "parallel" },
      "with-hyphen": { type: "parallel", after: ["first"] },
      here: {
        type: "connector.action",
        connector: "echo",
        action: "echo",
        after: ["with-hyphen"],
        input: template,
      },
      later: { type: "parallel", after: ["here"] },
    },
  };
  return checkExpressions(document).map(({ code, offset }) => `${code} ${offset}`);
}

describe("FLOW-01 expressions", () => {
  it.each([
    "no expression",
    "${{ input.a }} and ${{ run.id }}",
    "${{ nodes.first.output }}",
    '${{ nodes."with-hyphen".output[status = "x"].{"a": whatever} }}',
    "${{ nodes.`with-hyphen`.error }}",
    "${{ $sum(input.items.price) }}",
    "${{ $map(input.items, function($i) { $i.price * nodes.first.output }) }}",
    "${{ $$.input.a }}",
    "${{ input.items[name = $$.input.name] }}",
    '${{ {"a": {"b": input.c}} }}',
    "$${{ not an expression }}",
    "${{ input.items^(price).name }}",
  ])("accepts %s", (template) => {
    expect(found(template)).toEqual([]);
  });

  it.each([
    ["${{ nodes.nothing.output }}", "unknown_reference 10"],
    ["${{ nodes.later.output }}", "not_before 10"],
    ["${{ nodes.here.output }}", "not_before 10"],
    ["${{ nodes.first.result }}", "unknown_reference 16"],
    ["${{ env.HOME }}", "unknown_reference 4"],
    ["a ${{ $$.secrets.x }}", "unknown_reference 9"],
    ["${{ $sum(inputs.x) }}", "unknown_reference 9"],
    ["${{ $now() }}", "forbidden_function 4"],
    ["${{ $map([1], $random) }}", "forbidden_function 14"],
    ['${{ $eval("1") }}', "forbidden_function 4"],
    ["${{ input. }}", "expression 10"],
    ["x ${{ input.a", "expression 2"],
  ])("refuses %s", (template, expected) => {
    expect(found(template)).toEqual([expected]);
  });
});
