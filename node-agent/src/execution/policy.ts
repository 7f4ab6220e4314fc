// What the owner of a host allows to shell steps, and what of it a step gets. Fails closed: whatever a step requires and this host
// does not provide is never left out silently. Pure.

import { type EnforcedLimit, enforcedLimits } from "@holdfast/contracts/execution/limits";
import type { StepSandbox } from "@holdfast/contracts/execution/payloads";
import type { Environment } from "@holdfast/kit/settings";
import type { SandboxCheck, SandboxFeatures, SandboxLimits } from "../drivers/sandbox/driver.ts";
import { ALLOW_NETWORK, ALLOW_UNENFORCED, type ExecutionValues, PASSTHROUGH } from "./settings.ts";

export type SandboxPolicy = {
  limits: SandboxLimits;
  timeoutMs: number;
  outputCharacters: number;
  image: string;
  networkDefault: "none" | "enabled";
  allowNetwork: boolean;
  allowUnenforced: readonly EnforcedLimit[];
  /** Names of variables of the agent that steps may ask for. */
  passthrough: readonly string[];
};

const MEBIBYTE = 1024 * 1024;

export function policyOf(settings: PolicyValues): SandboxPolicy {
  const { memoryMb, cpus, pids, diskMb } = settings;
  return {
    limits: { memoryBytes: memoryMb * MEBIBYTE, cpus, pids, diskBytes: diskMb * MEBIBYTE },
    timeoutMs: settings.timeoutMs,
    outputCharacters: settings.outputMaxChars,
    image: settings.image,
    networkDefault: settings.networkDefault,
    allowNetwork: settings.allowNetwork === "yes",
    allowUnenforced: settings.allowUnenforced,
    passthrough: settings.envPassthrough,
  };
}

export type PolicyValues = Pick<
  ExecutionValues,
  | "timeoutMs"
  | "memoryMb"
  | "cpus"
  | "pids"
  | "diskMb"
  | "outputMaxChars"
  | "image"
  | "networkDefault"
  | "allowNetwork"
  | "allowUnenforced"
  | "envPassthrough"
>;

type Offered = { check: SandboxCheck; provides: SandboxFeatures; policy: SandboxPolicy };

/** Whether a step has the network. The host itself always has it. */
export function hasNetwork({ network }: StepSandbox, { networkDefault }: SandboxPolicy): boolean {
  return (network ?? networkDefault) === "enabled";
}

export function refusalOf(wanted: StepSandbox, { check, provides, policy }: Offered): string | undefined {
  const { backend } = check;
  if (wanted.backend !== undefined && wanted.backend !== backend) {
    return `the step requires the backend ${JSON.stringify(wanted.backend)}, and this agent has ${backend}`;
  }
  if (wanted.docker !== undefined && !provides.images) {
    return `the step requires the image ${JSON.stringify(wanted.docker.image)}, and the backend ${backend} has no images`;
  }
  if (!provides.isolation && wanted.network === "none") {
    return `the step requires a sandbox without network, which the backend ${backend} cannot provide`;
  }
  if (provides.isolation && hasNetwork(wanted, policy) && !policy.allowNetwork) {
    return `the step requires the network, which the owner of the host has not allowed. To allow it, set ${ALLOW_NETWORK}=yes and restart the agent`;
  }
  return unenforcedOf(check, policy);
}

/** Limits of the policy that nothing would enforce, with what to change. */
export function unenforcedOf(
  { backend, limits }: SandboxCheck,
  { allowUnenforced }: Pick<SandboxPolicy, "allowUnenforced">,
): string | undefined {
  const missing = enforcedLimits.filter((one) => !limits[one].enforced && !allowUnenforced.includes(one));
  if (missing.length === 0) return undefined;
  const reasons = missing.map((one) => {
    const limit = limits[one];
    return limit.enforced ? "" : `${one} (${limit.what}; ${limit.remedy})`;
  });
  return (
    `the backend ${backend} cannot enforce these limits on this host: ${[...new Set(reasons)].join(", ")}. ` +
    `To run steps without them, set ${ALLOW_UNENFORCED}=${missing.join(",")} and restart the agent`
  );
}

/** A result has room for so many. */
const MOST_SHOWN = 20;
const LONGEST_SHOWN = 100;

export type Passed = {
  env: Record<string, string>;
  /** Each with the reason. */
  missing: readonly string[];
};

/** Variables of the agent that both the step and the owner of the host name. */
export function passedOn(
  wanted: readonly string[] = [],
  owned: readonly string[],
  environment: Environment,
): Passed {
  const env: Record<string, string> = {};
  const missing: string[] = [];
  for (const name of new Set(wanted)) {
    const value = environment[name];
    const shown = name.slice(0, LONGEST_SHOWN);
    if (!owned.includes(name)) missing.push(`${shown}: not in ${PASSTHROUGH} of the agent's host`);
    else if (value === undefined || value === "") missing.push(`${shown}: not set on the agent's host`);
    else env[name] = value;
  }
  const more = missing.length - MOST_SHOWN;
  return { env, missing: more > 0 ? [...missing.slice(0, MOST_SHOWN), `and ${more} more`] : missing };
}
