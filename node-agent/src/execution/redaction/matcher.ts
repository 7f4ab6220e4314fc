// Finds many patterns in a stream of symbols, one symbol at a time: an Aho–Corasick automaton in flat arrays. Its time is linear
// in the stream, whatever a script prints, and its memory linear in the patterns.

export type Pattern = {
  symbols: readonly number[];
  /** The symbol after a match holds bits of the secret, too, and is covered with it. */
  after: boolean;
};

export type Automaton = {
  /** The state after one more symbol. 0 is the beginning. */
  next(state: number, symbol: number): number;
  /** How many symbols of a pattern have been read in this state. */
  depth(state: number): number;
  /** The longest pattern that ends in this state; undefined: none does. */
  matched(state: number): Pattern | undefined;
};

export function buildAutomaton(patterns: readonly Pattern[]): Automaton {
  const size = 1 + patterns.reduce((sum, { symbols }) => sum + symbols.length, 0);
  const symbolOf = new Int32Array(size);
  const childOf = new Int32Array(size);
  const siblingOf = new Int32Array(size);
  const failOf = new Int32Array(size);
  const depthOf = new Int32Array(size);
  const matchOf = new Array<Pattern | undefined>(size).fill(undefined);

  const child = (state: number, symbol: number): number => {
    let at = childOf[state] ?? 0;
    while (at !== 0 && symbolOf[at] !== symbol) at = siblingOf[at] ?? 0;
    return at;
  };
  const next = (state: number, symbol: number): number => {
    let from = state;
    for (;;) {
      const to = child(from, symbol);
      if (to !== 0 || from === 0) return to;
      from = failOf[from] ?? 0;
    }
  };

  let used = 0;
  for (const pattern of patterns) {
    let state = 0;
    for (const symbol of pattern.symbols) {
      let to = child(state, symbol);
      if (to === 0) {
        used += 1;
        to = used;
        symbolOf[to] = symbol;
        siblingOf[to] = childOf[state] ?? 0;
        childOf[state] = to;
        depthOf[to] = (depthOf[state] ?? 0) + 1;
      }
      state = to;
    }
    if (state !== 0) matchOf[state] = wider(matchOf[state], pattern);
  }

  // By depth: what a state falls back to is complete before the state is.
  const queue: number[] = [0];
  for (let at = 0; at < queue.length; at += 1) {
    const state = queue[at] ?? 0;
    for (let to = childOf[state] ?? 0; to !== 0; to = siblingOf[to] ?? 0) {
      const fail = state === 0 ? 0 : next(failOf[state] ?? 0, symbolOf[to] ?? 0);
      failOf[to] = fail;
      matchOf[to] ??= matchOf[fail];
      queue.push(to);
    }
  }
  return { next, depth: (state) => depthOf[state] ?? 0, matched: (state) => matchOf[state] };
}

/** Two secrets may have the same form with different bits after it. */
function wider(one: Pattern | undefined, other: Pattern): Pattern {
  return one ? { symbols: one.symbols, after: one.after || other.after } : other;
}
