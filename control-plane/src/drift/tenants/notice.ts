// Whether tenants are notified of a change of their allocation's state now. Pure. While the control plane is suspected it waits: a
// fleet that returns a minute later should not have alarmed anybody. The state itself is shown at once.

import type { UserState } from "@holdfast/contracts/reasons/vocabulary";

export type Noticing = {
  /** The state before. */
  shown: UserState;
  /** The state of the last notification, if that is not what was shown. */
  notified: UserState | null;
  next: UserState;
  braked: boolean;
};

/** `notified`: the state of the last notification, if that is not what is shown from now on. */
export type Noticed = { send: boolean; notified: UserState | null };

export function noticeOf({ shown, notified, next, braked }: Noticing): Noticed {
  const known = notified ?? shown;
  if (next === known) return { send: false, notified: null };
  // Rests on proof, never on silence.
  const waits = braked && next !== "security_action_required";
  return waits ? { send: false, notified: known } : { send: true, notified: null };
}
