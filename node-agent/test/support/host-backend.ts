// Steps on the host itself, as in tests that need a script's effects on the host's files.

import { readSettings } from "@holdfast/kit/settings";
import type { SandboxDriver } from "../../src/drivers/sandbox/driver.ts";
import { createBackends } from "../../src/execution/backends.ts";
import { policyOf } from "../../src/execution/policy.ts";
import { executionSettings } from "../../src/execution/settings.ts";
import type { Sandbox } from "../../src/execution/shell-step.ts";

/** What the owner of such a host sets, with time for steps on a busy machine. */
export const hostBackend = {
  HOLDFAST_EXECUTION_BACKEND: "host",
  HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "all",
  HOLDFAST_EXECUTION_TIMEOUT_MS: "600000",
};

/** With this driver, or with none. */
export function sandboxWith(driver?: SandboxDriver, env: Record<string, string> = hostBackend): Sandbox {
  const policy = policyOf(readSettings(executionSettings, env));
  return { backends: createBackends(driver ? [driver] : [], driver?.name), policy, environment: {} };
}
