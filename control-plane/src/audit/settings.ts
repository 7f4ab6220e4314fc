// Settings of the audit.

import { integer, setting } from "@holdfast/kit/settings";

export const auditSettings = {
  auditDedupeWindowSeconds: setting(integer({ min: 10, max: 86_400 }), {
    env: "HOLDFAST_AUDIT_DEDUPE_WINDOW_SECONDS",
    default: 300,
    help: "A failure that is repeated gets at most one audit event in this number of seconds: the first, then summaries with first_seen_at, last_seen_at and count, and one when it is over.",
  }),
};
