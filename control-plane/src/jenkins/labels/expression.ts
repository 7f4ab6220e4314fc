// Label expressions of Jenkins: names, quoted names, !, &&, ||, ->, <-> and parentheses, in falling order of precedence. Operators
// of one kind are read from the left, as Jenkins does it. Pure.

export type LabelExpression =
  | { kind: "label"; name: string }
  | { kind: "not"; of: LabelExpression }
  | { kind: BinaryKind; left: LabelExpression; right: LabelExpression };

type BinaryKind = "and" | "or" | "implies" | "iff";

/** The text is no label expression; the message says where and why. */
export class LabelSyntaxError extends Error {
  override name = "LabelSyntaxError";
}

type Token = { kind: "label"; name: string } | { kind: "symbol"; text: string };

/** From the one that binds least to the one that binds most. */
const levels: readonly { symbol: string; kind: BinaryKind }[] = [
  { symbol: "<->", kind: "iff" },
  { symbol: "->", kind: "implies" },
  { symbol: "||", kind: "or" },
  { symbol: "&&", kind: "and" },
];
const symbols = [...levels.map(({ symbol }) => symbol), "!", "(", ")"];

/** Deeper ones are refused before the stack ends. */
const DEEPEST = 200;
const LONGEST = 4096;

/** Throws LabelSyntaxError. */
export function parseLabels(text: string): LabelExpression {
  if (text.length > LONGEST) throw new LabelSyntaxError(`longer than ${LONGEST} characters`);
  const tokens = tokensOf(text);
  let at = 0;
  const isNext = (symbol: string) => {
    const token = tokens[at];
    return token?.kind === "symbol" && token.text === symbol;
  };
  const accept = (symbol: string) => {
    if (!isNext(symbol)) return false;
    at += 1;
    return true;
  };

  const binary = (level: number, depth: number): LabelExpression => {
    const operator = levels[level];
    if (!operator) return unary(depth);
    let left = binary(level + 1, depth);
    while (accept(operator.symbol)) left = { kind: operator.kind, left, right: binary(level + 1, depth) };
    return left;
  };
  const unary = (depth: number): LabelExpression => {
    if (depth > DEEPEST) throw new LabelSyntaxError(`more than ${DEEPEST} levels deep`);
    if (accept("!")) return { kind: "not", of: unary(depth + 1) };
    if (accept("(")) {
      const inner = binary(0, depth + 1);
      if (!accept(")")) throw new LabelSyntaxError("a closing parenthesis is missing");
      return inner;
    }
    const token = tokens[at];
    if (token?.kind !== "label") throw new LabelSyntaxError(`a label is missing before ${described(token)}`);
    at += 1;
    return { kind: "label", name: token.name };
  };

  const expression = binary(0, 0);
  if (at < tokens.length) throw new LabelSyntaxError(`an operator is missing before ${described(tokens[at])}`);
  return expression;
}

/** Whether a node with these labels may run it. */
export function matchesLabels(expression: LabelExpression, labels: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case "label":
      return labels.has(expression.name);
    case "not":
      return !matchesLabels(expression.of, labels);
    case "and":
      return matchesLabels(expression.left, labels) && matchesLabels(expression.right, labels);
    case "or":
      return matchesLabels(expression.left, labels) || matchesLabels(expression.right, labels);
    case "implies":
      return !matchesLabels(expression.left, labels) || matchesLabels(expression.right, labels);
    case "iff":
      return matchesLabels(expression.left, labels) === matchesLabels(expression.right, labels);
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    const symbol = symbols.find((one) => rest.startsWith(one));
    if (/^\s/.test(rest)) at += 1;
    else if (symbol) {
      tokens.push({ kind: "symbol", text: symbol });
      at += symbol.length;
    } else if (rest.startsWith('"')) {
      const quoted = /^"((?:\\.|[^"\\\r\n])*)"/.exec(rest);
      if (!quoted) throw new LabelSyntaxError("a closing quotation mark is missing");
      tokens.push({ kind: "label", name: unescaped(quoted[1] ?? "") });
      at += quoted[0].length;
    } else {
      // A hyphen belongs to a name unless it begins an arrow.
      const name = /^(?:[^\s"'!&|<>()-]|-(?!>))+/.exec(rest)?.[0];
      if (!name) throw new LabelSyntaxError(`${JSON.stringify(rest[0])} is not expected here`);
      tokens.push({ kind: "label", name });
      at += name.length;
    }
  }
  return tokens;
}

const escapes: Record<string, string> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, character: string) => escapes[character] ?? character);
}

const described = (token: Token | undefined) =>
  token === undefined ? "the end" : JSON.stringify(token.kind === "label" ? token.name : token.text);
