import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LabelExpression, LabelSyntaxError, matchesLabels, parseLabels } from "./expression.ts";

const matches = (text: string, ...labels: string[]) => matchesLabels(parseLabels(text), new Set(labels));

describe("a label expression", () => {
  it.for([
    ["linux", ["linux"], true],
    ["linux", ["windows"], false],
    ["linux", [], false],
    ["linux-x64.2", ["linux-x64.2"], true],
    ["!windows", ["linux"], true],
    ["!windows", ["windows"], false],
    ["linux && docker", ["linux", "docker"], true],
    ["linux&&docker", ["linux"], false],
    ["linux || bsd", ["bsd"], true],
    ["linux||bsd", [], false],
    ["a -> b", ["a"], false],
    ["a->b", ["a", "b"], true],
    ["a->b", [], true],
    ["a <-> b", [], true],
    ["a<->b", ["a"], false],
    ["a<->b", ["a", "b"], true],
    ['"two words"', ["two words"], true],
    ['"a&&b"', ["a&&b"], true],
    ['"a\\"b\\\\"', ['a"b\\'], true],
    ["(linux || bsd) && !arm", ["bsd"], true],
    ["(linux || bsd) && !arm", ["bsd", "arm"], false],
    // && binds more than ||, which binds more than ->, which binds more than <->.
    ["a || b && c", ["a"], true],
    ["a && b || c", ["c"], true],
    ["a -> b || c", ["a", "c"], true],
    ["a || b -> c", ["a"], false],
    ["a <-> b -> c", [], false],
    ["!a && b", ["b"], true],
    // From the left: (a -> b) -> c.
    ["a -> b -> c", [], false],
    ["a<->b<->c", ["c"], true],
  ] as const)("VM-06 %s of %j is %s", ([text, labels, expected]) => {
    expect(matches(text, ...labels)).toBe(expected);
  });

  it.for([
    "",
    " ",
    "&&",
    "a &&",
    "a b",
    "(a",
    "a)",
    "()",
    "!",
    '"a',
    "a & b",
    "a | b",
    "a < b",
    "a <- b",
    "'a'",
    "a > b",
  ])("VM-06 is refused: %j", (text) => {
    expect(() => parseLabels(text)).toThrow(LabelSyntaxError);
  });

  it("VM-06 is refused if it is too deep or too long, without ending the process", () => {
    expect(() => parseLabels(`${"(".repeat(1000)}a${")".repeat(1000)}`)).toThrow(LabelSyntaxError);
    expect(() => parseLabels(`${"!".repeat(1000)}a`)).toThrow(LabelSyntaxError);
    expect(() => parseLabels("a".repeat(10_000))).toThrow(LabelSyntaxError);
  });
});

const names = fc.constantFrom("a", "b", "c", "d-1", "two words", 'q"uote', "x->y");
const expressions = fc.letrec<{ any: LabelExpression }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    names.map((name) => ({ kind: "label" as const, name })),
    tie("any").map((of) => ({ kind: "not" as const, of })),
    fc.record({
      kind: fc.constantFrom("and" as const, "or" as const, "implies" as const, "iff" as const),
      left: tie("any"),
      right: tie("any"),
    }),
  ),
})).any;

const symbolOf = { and: "&&", or: "||", implies: "->", iff: "<->" } as const;
const rank = { iff: 0, implies: 1, or: 2, and: 3, not: 4, label: 5 } as const;

/** With as few parentheses as the precedence allows. */
function written(one: LabelExpression): string {
  if (one.kind === "label") return /^[\w-]+$/.test(one.name) ? one.name : JSON.stringify(one.name);
  const inner = (part: LabelExpression, least: number) =>
    rank[part.kind] < least ? `(${written(part)})` : written(part);
  if (one.kind === "not") return `!${inner(one.of, rank.not)}`;
  const own = rank[one.kind];
  return `${inner(one.left, own)}${symbolOf[one.kind]}${inner(one.right, own + 1)}`;
}

/** By truth values, apart from the evaluator. */
function truth(one: LabelExpression, labels: ReadonlySet<string>): boolean {
  if (one.kind === "label") return labels.has(one.name);
  if (one.kind === "not") return truth(one.of, labels) === false;
  const values = `${Number(truth(one.left, labels))}${Number(truth(one.right, labels))}`;
  return { and: ["11"], or: ["01", "10", "11"], implies: ["00", "01", "11"], iff: ["00", "11"] }[
    one.kind
  ].includes(values);
}

describe("any label expression", () => {
  it("VM-06 is read as it was written, and means what its operators mean for any labels", () => {
    fc.assert(
      fc.property(expressions, fc.uniqueArray(names), (expression, labels) => {
        const read = parseLabels(written(expression));
        expect(read).toEqual(expression);
        const set = new Set(labels);
        expect(matchesLabels(read, set)).toBe(truth(expression, set));
      }),
    );
  });

  it("VM-06 is read or refused, whatever its text is", () => {
    const pieces = fc.constantFrom(
      "a",
      "-",
      ">",
      "<",
      "!",
      "&",
      "&&",
      "|",
      "||",
      "(",
      ")",
      '"',
      "\\",
      " ",
      "'",
      "->",
    );
    fc.assert(
      fc.property(
        fc.array(pieces).map((parts) => parts.join("")),
        (text) => {
          try {
            parseLabels(text);
          } catch (error) {
            expect(error).toBeInstanceOf(LabelSyntaxError);
          }
        },
      ),
    );
  });
});
