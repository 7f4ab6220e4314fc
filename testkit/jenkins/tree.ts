// The query `tree` of Jenkins' API: `a,b[c,d]` selects fields. What is not asked for is not in the answer.

type Tree = Map<string, Tree | undefined>;

export function pick(value: object, tree: string | null): object {
  return tree === null ? value : (select(value, parse(tree)) as object);
}

function parse(text: string): Tree {
  let at = 0;
  const fields = (): Tree => {
    const found: Tree = new Map();
    while (at < text.length) {
      const name = /^\w+/.exec(text.slice(at))?.[0];
      if (!name) throw new Error(`not a tree: ${text}`);
      at += name.length;
      let inner: Tree | undefined;
      if (text[at] === "[") {
        at += 1;
        inner = fields();
        at += 1;
      }
      found.set(name, inner);
      if (text[at] !== ",") break;
      at += 1;
    }
    return found;
  };
  return fields();
}

function select(value: unknown, tree: Tree | undefined): unknown {
  if (tree === undefined || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((one) => select(one, tree));
  const known = value as Record<string, unknown>;
  return Object.fromEntries(
    [...tree].flatMap(([name, inner]) => (name in known ? [[name, select(known[name], inner)] as const] : [])),
  );
}
