// The lines in which two texts differ, with those that they have in common.

export type Line = { kind: "same" | "added" | "removed"; text: string };

/** Beyond this, what is between the common beginning and end is shown as replaced: the comparison takes the product of both. */
const MOST_LINES = 2_000;

export function diffLines(before: string, after: string): Line[] {
  const old = before.split("\n");
  const next = after.split("\n");
  let start = 0;
  while (start < Math.min(old.length, next.length) && old[start] === next[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, next.length) - start && old.at(-1 - end) === next.at(-1 - end)) end++;
  const same = (lines: string[]) => lines.map((text): Line => ({ kind: "same", text }));
  return [
    ...same(old.slice(0, start)),
    ...diffMiddle(old.slice(start, old.length - end), next.slice(start, next.length - end)),
    ...same(old.slice(old.length - end)),
  ];
}

function diffMiddle(old: string[], next: string[]): Line[] {
  const removed = (text: string): Line => ({ kind: "removed", text });
  const added = (text: string): Line => ({ kind: "added", text });
  if (Math.max(old.length, next.length) > MOST_LINES) return [...old.map(removed), ...next.map(added)];
  // The length of the longest common subsequence of the rest of both.
  const width = next.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = next.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === next[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < next.length) {
    const [one, other] = [old[i], next[j]];
    if (one !== undefined && one === other) {
      lines.push({ kind: "same", text: one });
      i++;
      j++;
    } else if (one !== undefined && (other === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(one));
      i++;
    } else {
      lines.push(added(other ?? ""));
      j++;
    }
  }
  return lines;
}
