// Environment variables that other systems of this kind use and that no setting of Holdfast has as an alias. A process
// that finds one set reports it at its start: otherwise people would expect it to have an effect.

import type { Environment } from "./settings.ts";

/** By what they are for. A name leaves this table when a setting takes it as an alias. */
const notSupportedYet = {
  "pinning the keys that sign tasks": ["GPUAAS_TASK_SIGNING_PUBKEYS"],
} as const satisfies Record<string, readonly string[]>;

/** Will never be supported, with the reason. */
const withoutMeaning = { NODE_AGENT_PIP_CONSTRAINT: "the agent has no Python packages" };

/** The status of each name, worded to follow "is". */
export const unsupportedNames: ReadonlyMap<string, string> = new Map([
  ...Object.entries(notSupportedYet).flatMap(([purpose, names]) =>
    names.map((name): [string, string] => [name, `known, not supported yet; it is for ${purpose}`]),
  ),
  ...Object.entries(withoutMeaning).map(([name, why]): [string, string] => [name, `known, ignored; ${why}`]),
]);

/** One line for each that is set. Never the value: it may be secret. */
export function warningsAboutUnsupported(env: Environment): string[] {
  return [...unsupportedNames]
    .filter(([name]) => (env[name] ?? "") !== "")
    .map(([name, status]) => `${name} is set: ${status}.`);
}
