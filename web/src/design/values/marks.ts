// A state as the page shows it: a shape beside the title that all of Holdfast uses for it.

import type { StateTitle } from "@holdfast/contracts/words/state-titles";
import type { State } from "./StatusMark.tsx";

export type Mark = { state: State; word: string; meaning: string };

export function marksOf<Key extends string>(
  titles: Record<Key, StateTitle>,
  shapes: Record<Key, State>,
): Record<Key, Mark> {
  const keys = Object.keys(shapes) as Key[];
  return Object.fromEntries(keys.map((key) => [key, markOf(titles[key], shapes[key])])) as Record<Key, Mark>;
}

export function markOf({ title, meaning }: StateTitle, state: State): Mark {
  return { state, word: title, meaning };
}
