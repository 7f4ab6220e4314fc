// Settings of recovery: whether nodes may get a new identity by themselves, and within which limits.

import { integer, oneOf, setting, type Values } from "@holdfast/kit/settings";

export const recoverySettings = {
  nodeAutomaticRecovery: setting(oneOf("on", "off"), {
    env: "HOLDFAST_NODE_AUTOMATIC_RECOVERY",
    default: "on",
    help: "`off`: nodes get no recovery tokens, and one that has lost its identity waits for an operator to enroll it again.",
  }),
  nodeRecoveryTokenMaxAgeSeconds: setting(integer({ min: 300, max: 604_800 }), {
    env: "HOLDFAST_NODE_RECOVERY_TOKEN_MAX_AGE_SECONDS",
    default: 86_400,
    help: "How long a recovery token works after it was issued. Connected nodes get a new one at least every hour.",
  }),
  nodeRecoveriesPerSecond: setting(integer({ min: 1, max: 10_000 }), {
    env: "HOLDFAST_NODE_RECOVERIES_PER_SECOND",
    default: 100,
    help: "How many nodes each api gives a new identity in a second. The others get a time to try again (`Retry-After`).",
  }),
};

/** Its values change while the platform runs: read them when they are needed. */
export type RecoveryPolicy = {
  readonly automatic: boolean;
  readonly tokenMaxAgeSeconds: number;
  perSecond: number;
};

export function recoveryPolicyOf(settings: Values<typeof recoverySettings>): RecoveryPolicy {
  return {
    get automatic() {
      return settings.nodeAutomaticRecovery === "on";
    },
    get tokenMaxAgeSeconds() {
      return settings.nodeRecoveryTokenMaxAgeSeconds;
    },
    perSecond: settings.nodeRecoveriesPerSecond,
  };
}
