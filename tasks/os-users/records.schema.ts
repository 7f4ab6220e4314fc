// The form of users.json. The agent reads it by records.generated.ts, which is made from this.

import { z } from "zod";
import { UIDS } from "./accounts.ts";

const Uid = z.int().min(UIDS.first).max(UIDS.last);

const UserRecord = z.strictObject({
  allocation_id: z.string(),
  uid: Uid,
  /** `intended` may have made anything or nothing yet; `removing` may have removed anything or nothing. */
  state: z.enum(["intended", "made", "removing"]),
});

export const Users = z.strictObject({
  /** uids are given in turn. */
  next_uid: Uid,
  /** So many from there on own nothing: they were never given, or the disks were searched since. */
  clean: z
    .int()
    .min(0)
    .max(UIDS.last - UIDS.first + 1)
    .default(0),
  /** Owned something when the disks were searched last. They are not given until a search finds nothing of theirs. */
  quarantined: z.array(Uid).default([]),
  users: z.record(z.string(), UserRecord),
});
