// Which backend runs the shell steps of this agent: the one that the owner of the host chose, or the first that works. What was
// found is remembered until a run could not be started; what does not work is tried again with the next step.

import type { SandboxBackend } from "@holdfast/contracts/execution/limits";
import type { SandboxCheck, SandboxDriver } from "../drivers/sandbox/driver.ts";
import { BACKEND_SETTING } from "./settings.ts";

export type Choice = { driver: SandboxDriver; check: SandboxCheck } | { refused: string };

export type Backends = {
  choose(): Promise<Choice>;
  /** The backend may have changed: it is checked again with the next step. */
  doubt(): void;
};

/** `host` is never in it: it isolates nothing. */
const automatic: readonly SandboxBackend[] = ["docker", "podman", "bubblewrap"];

export function createBackends(
  drivers: readonly SandboxDriver[],
  configured: SandboxBackend | undefined,
): Backends {
  let found: Promise<Choice> | undefined;
  return {
    async choose() {
      found ??= chooseAmong(drivers, configured);
      const choice = await found;
      if ("refused" in choice) found = undefined;
      return choice;
    },
    doubt() {
      found = undefined;
    },
  };
}

async function chooseAmong(
  drivers: readonly SandboxDriver[],
  configured: SandboxBackend | undefined,
): Promise<Choice> {
  const names = configured === undefined ? automatic : [configured];
  const candidates = names.flatMap((name) => drivers.filter((one) => one.name === name));
  if (candidates.length === 0)
    return { refused: `this version of the agent does not support the backend ${names}` };
  const problems: string[] = [];
  for (const driver of candidates) {
    const check = await driver.check();
    if (!check.problem) return { driver, check };
    problems.push(`${driver.name}: ${check.problem.what}; ${check.problem.remedy}`);
  }
  const none =
    configured === undefined ? "no sandbox works on this host" : "the backend does not work on this host";
  return {
    refused:
      `${none}. ${problems.join(". ")}. \`holdfast agent sandbox check\` shows everything. ` +
      `${BACKEND_SETTING}=host would run scripts as the user of the agent, without isolation`,
  };
}
