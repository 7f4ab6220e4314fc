// Options that filter by state. They take the titles that tables show and the API's values, so that both what a person
// reads and what a script has always passed work.

import type { StateTitle } from "@holdfast/contracts/words/state-titles";
import { InvalidArgumentError, Option } from "commander";

/** `more`: names that are no title of a state, with the value they stand for. */
export function stateOption<State extends string>(
  flags: string,
  description: string,
  titles: Partial<Record<State, StateTitle>>,
  more: Record<string, State> = {},
): Option {
  const named = Object.entries<StateTitle | undefined>(titles).flatMap(([state, title]) =>
    title === undefined ? [] : [[title.title.toLowerCase(), state as State] as const],
  );
  const byName = new Map<string, State>([...named, ...Object.entries(more)]);
  const names = [...byName.keys()];
  const values = new Set<string>(byName.values());
  return new Option(flags, `${description} (${names.join(", ")})`).argParser((text: string) => {
    const state = byName.get(text) ?? (values.has(text) ? text : undefined);
    if (state === undefined) throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
    return state;
  });
}
