// Settings of Jenkins controllers, and the times that are not settings.

import { integer, kinds, setting } from "@holdfast/kit/settings";
import { retentionSetting } from "../tasks/settings.ts";

/** Between two polls of one controller a build may begin; Jenkins itself needs a few seconds for it. */
export const START_SECONDS = 30;
/** Whoever polls has the controller for this long; then another process may. */
export const POLL_CLAIM_SECONDS = 60;
/** No request begins later than this after the poll began. */
export const POLL_BUDGET_MS = 40_000;
/** How long an item waits for a host. */
export const WAIT_FOR_HOST_SECONDS = 3600;

export const jenkinsSettings = {
  jenkinsPollSeconds: setting(integer({ min: 1, max: 300 }), {
    env: "HOLDFAST_JENKINS_POLL_SECONDS",
    default: 5,
    help: "How often the queue of each Jenkins controller is read, in seconds.",
  }),
  jenkinsAllowPrivate: setting(kinds.addressList, {
    env: "HOLDFAST_JENKINS_ALLOW_PRIVATE",
    default: [],
    defaultText: "none",
    help: "Private, loopback and link-local addresses that Jenkins controllers of organizations may have, and that may be reached without TLS.",
  }),
};

export const jenkinsWorkerSettings = { taskRetentionDays: retentionSetting };
