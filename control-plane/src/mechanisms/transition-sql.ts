// SQL derived from a transition table, so that the database executes the table and no statement repeats it. The states
// become literals: PostgreSQL uses a partial index only for a condition whose values it sees when it plans.

import { ConstantSql } from "../database/connect.ts";

/** The outcome of each event in each state. Total: a missing cell does not compile. */
export type TransitionTable<State extends string, Event extends string, Outcome> = Readonly<
  Record<State, Readonly<Record<Event, Outcome>>>
>;

/** The states in which the event has such an outcome, in the order of the table. */
export function statesWhere<State extends string, Event extends string, Outcome>(
  table: TransitionTable<State, Event, Outcome>,
  event: Event,
  hasOutcome: (outcome: Outcome, state: State) => boolean,
): State[] {
  return statesOf(table).filter((state) => hasOutcome(table[state][event], state));
}

/** An outcome that changes the state says to which one; every other outcome is a word. */
export function targetOf<State extends string>(outcome: { to: State } | string): State | undefined {
  return typeof outcome === "object" ? outcome.to : undefined;
}

/** The states that the event changes. */
export function statesChangedBy<
  State extends string,
  Event extends string,
  Outcome extends { to: State } | string,
>(table: TransitionTable<State, Event, Outcome>, event: Event): State[] {
  return statesWhere(table, event, (outcome) => targetOf(outcome) !== undefined);
}

/** The states that some event leads out of. A row in any other state does not change again. */
export function statesWithExit<State extends string, Event extends string, Outcome>(
  table: TransitionTable<State, Event, Outcome>,
  targetOf: (outcome: Outcome) => State | undefined,
): State[] {
  return statesOf(table).filter((state) => {
    const targets = Object.values<Outcome>(table[state]).map(targetOf);
    return targets.some((target) => target !== undefined && target !== state);
  });
}

/** What `read` returns for the cell of the event and of the state in the column; `otherwise` where it returns nothing. */
function cellOf<State extends string, Event extends string, Outcome>(
  table: TransitionTable<State, Event, Outcome>,
  column: string,
  event: Event,
  read: (outcome: Outcome) => string | undefined,
  otherwise?: ConstantSql,
): ConstantSql {
  const cases = statesOf(table).flatMap((state) => {
    const value = read(table[state][event]);
    return value === undefined ? [] : [[state, value] as const];
  });
  return caseOf(column, cases, otherwise);
}

/** What `read` returns for the cell of the event and of the state that are in these columns, for these events. */
export function cellsOf<State extends string, Event extends string, Outcome>(
  table: TransitionTable<State, Event, Outcome>,
  { event, status }: { event: string; status: string },
  events: readonly Event[],
  read: (outcome: Outcome) => string | undefined,
): ConstantSql {
  return caseOf(
    event,
    events.map((one) => [one, cellOf(table, status, one, read)]),
  );
}

/** The state after the event; where the table changes nothing, the state that is in the column. */
export function stateAfterEvent<
  State extends string,
  Event extends string,
  Outcome extends { to: State } | string,
>(table: TransitionTable<State, Event, Outcome>, column: string, event: Event): ConstantSql {
  return cellOf(table, column, event, (outcome) => targetOf(outcome), new ConstantSql(column));
}

/** `column = 'a'`, or `column IN ('a', 'b')`. */
export function isOneOf(column: string, states: readonly string[]): ConstantSql {
  if (states.length === 0) throw new Error(`no state is left for a condition on ${column}`);
  const list = states.map(quoted).join(", ");
  return new ConstantSql(states.length === 1 ? `${column} = ${list}` : `${column} IN (${list})`);
}

/** `CASE column WHEN … THEN … ELSE … END`; a text is a literal. */
export function caseOf(
  column: string,
  cases: readonly (readonly [when: string, then: string | ConstantSql])[],
  otherwise: ConstantSql = NULL,
): ConstantSql {
  if (cases.length === 0) return otherwise;
  const branches = cases.map(([when, then]) => `WHEN ${quoted(when)} THEN ${expression(then)}`);
  return new ConstantSql(`CASE ${column} ${branches.join(" ")} ELSE ${otherwise.text} END`);
}

export const literal = (text: string) => new ConstantSql(quoted(text));

const NULL = new ConstantSql("NULL");

const expression = (value: string | ConstantSql) => (typeof value === "string" ? quoted(value) : value.text);

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

function statesOf<State extends string>(table: Readonly<Record<State, unknown>>): State[] {
  return Object.keys(table) as State[];
}
