// What a connector declares. One folder beside this file is one connector:
//   contract.ts            default export of `connector(…)`: its actions, with the schemas of input and output
//   contract.generated.ts  the same as agents have it, with checks in place of schemas, written by `npm run generate`
//   actions.ts             default export of `httpActions<typeof contract>(…)`: what each action sends, and what it makes of the response
// It is listed in all.ts, and nothing else has to change for a new one. The same code runs in the worker and on agents. Its tests, with
// a server like the real one, are in workflows/test/connectors/<name>/.

import type { z } from "zod";
import type { ActionSecret, ConnectorFacts, Effect } from "./checked-connector.ts";

export type Action<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> = {
  summary: string;
  effect: Effect;
  secret: ActionSecret;
  input: Input;
  output: Output;
};

export type Connector<Actions extends Record<string, Action> = Record<string, Action>> = ConnectorFacts & {
  actions: Actions;
};

export function connector<const Actions extends Record<string, Action>>(
  declared: Connector<Actions>,
): Connector<Actions> {
  return declared;
}
