// Removes secrets from the output of a step before it leaves the host. What is hidden depends on the whole text only, never on how it
// was cut into pieces: every character that belongs to an occurrence of a secret, in any of its forms, is hidden, and a row of them
// becomes one marker. Only what may be the beginning of a secret is held back, so output flows as it is printed. Pure.

import { type Forms, formsOf, SHORTEST_REDACTED } from "./forms.ts";
import { buildAutomaton, type Pattern } from "./matcher.ts";
import { type Scanner, scanBundles, scanPrivateKeys, scanTokens } from "./tokens.ts";
import { base64View, hexView, percentView, plainView, type Sink, unescapedView, type View } from "./views.ts";

export const MARKER = "[secret]";

export type RedactedStream = {
  /** Returns what can be shown of the output so far. */
  add(text: string): string;
  /** Returns the rest: nothing follows. */
  end(): string;
};

export type Redaction = {
  /** For one stream of output. */
  stream(): RedactedStream;
  /** For text that is complete. */
  text(text: string): string;
  /** For a result: all text in it, also the names of fields. */
  value(value: unknown): unknown;
};

type Watch = (
  cover: (from: number, to: number) => void,
  /** How many characters will be read at most. */
  most: number,
) => Scanner;

export function createRedaction(secrets: readonly string[]): Redaction {
  const watches: Watch[] = [scanTokens, scanBundles, scanPrivateKeys, ...watchesOf(formsOf(secrets))];
  const text = (whole: string) => {
    if (whole.length < SHORTEST_REDACTED) return whole;
    const one = createStream(watches, whole.length);
    return one.add(whole) + one.end();
  };
  const value = (any: unknown): unknown => {
    if (typeof any === "string") return text(any);
    if (Array.isArray(any)) return any.map(value);
    if (typeof any !== "object" || any === null) return any;
    return Object.fromEntries(Object.entries(any).map(([name, of]) => [text(name), value(of)]));
  };
  return { stream: () => createStream(watches), text, value };
}

function watchesOf({ units, bytes, nibbles, sextets }: Forms): Watch[] {
  if (units.length === 0) return [];
  const matching = (patterns: readonly Pattern[], ...views: ((sink: Sink) => View)[]): Watch[] => {
    const automaton = buildAutomaton(patterns);
    const longest = Math.max(...patterns.map(({ symbols }) => symbols.length));
    return views.map((view) => (cover, most) => {
      // A character is three bytes at most: no more symbols of one match can have been read.
      const remembered = Math.min(longest, 3 * most);
      return watchView({ automaton, remembered, view, cover });
    });
  };
  return [
    ...matching(
      units,
      plainView,
      (sink) => unescapedView(sink, 1),
      (sink) => unescapedView(sink, 2),
    ),
    ...matching(
      bytes,
      (sink) => percentView(sink, { plusIsSpace: false }),
      (sink) => percentView(sink, { plusIsSpace: true }),
    ),
    ...matching(nibbles, hexView),
    ...matching(sextets, base64View),
  ];
}

function watchView({
  automaton,
  remembered,
  view: open,
  cover,
}: {
  automaton: ReturnType<typeof buildAutomaton>;
  remembered: number;
  view(sink: Sink): View;
  cover(from: number, to: number): void;
}): Scanner {
  /** Where the last symbols came from; the oldest is overwritten. */
  const froms = new Float64Array(remembered);
  let count = 0;
  let state = 0;
  let coverNextFrom: number | undefined;
  const startOf = (depth: number) => froms[(count - depth) % remembered] ?? 0;
  const view = open({
    symbol(symbol, from, to) {
      froms[count % remembered] = from;
      count += 1;
      if (coverNextFrom !== undefined) cover(coverNextFrom, to);
      coverNextFrom = undefined;
      state = automaton.next(state, symbol);
      const matched = automaton.matched(state);
      if (!matched) return;
      cover(startOf(matched.symbols.length), to);
      if (matched.after) coverNextFrom = to;
    },
    interrupt() {
      state = 0;
      coverNextFrom = undefined;
    },
  });
  return {
    add: (unit, at) => view.add(unit, at, at + 1),
    waitsFrom() {
      const depth = automaton.depth(state);
      return depth > 0 ? startOf(depth) : view.waitsFrom();
    },
  };
}

function createStream(watches: readonly Watch[], most = Number.POSITIVE_INFINITY): RedactedStream {
  const covered = createCovered();
  const watching = watches.map((watch) => watch(covered.add, most));
  let held = "";
  /** Where `held` begins in the stream. */
  let base = 0;
  let afterMarker = false;

  const release = (until: number): string => {
    let shown = "";
    let at = base;
    while (at < until) {
      const next = covered.first(at);
      const hidden = next !== undefined && next.from <= at;
      const to = Math.min(until, hidden ? next.to : (next?.from ?? until));
      if (hidden) shown += afterMarker ? "" : MARKER;
      else shown += held.slice(at - base, to - base);
      afterMarker = hidden;
      at = to;
    }
    held = held.slice(until - base);
    base = until;
    return shown;
  };

  return {
    add(text) {
      const from = base + held.length;
      held += text;
      for (let index = 0; index < text.length; index += 1) {
        const unit = text.charCodeAt(index);
        for (const one of watching) one.add(unit, from + index);
      }
      const end = base + held.length;
      return release(watching.reduce((until, one) => Math.min(until, one.waitsFrom() ?? end), end));
    },
    end: () => release(base + held.length),
  };
}

/** Parts of a stream, in order and apart from each other. */
function createCovered() {
  const parts: { from: number; to: number }[] = [];
  return {
    add(from: number, to: number) {
      // Almost always at the end: symbols that waited for the next ones come late.
      let at = parts.length;
      while (at > 0 && (parts[at - 1]?.from ?? 0) > to) at -= 1;
      let first = at;
      const merged = { from, to };
      while (first > 0) {
        const part = parts[first - 1];
        if (!part || part.to < from) break;
        merged.from = Math.min(merged.from, part.from);
        merged.to = Math.max(merged.to, part.to);
        first -= 1;
      }
      parts.splice(first, at - first, merged);
    },
    /** The first part that ends after `at`. Forgets those before it. */
    first(at: number) {
      let ended = 0;
      while (ended < parts.length && (parts[ended]?.to ?? 0) <= at) ended += 1;
      if (ended > 0) parts.splice(0, ended);
      return parts[0];
    },
  };
}
