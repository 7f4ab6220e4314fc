// Generated from records.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./records.schema.ts";

const shared1 = check.chain(
  check.number(),
  check.integer(),
  check.min(70000, "Too small: expected number to be >=70000"),
  check.max(79999, "Too big: expected number to be <=79999"),
);

export type Users = z.output<typeof schemas.Users>;
export const Users: check.Check<Users> = check.of(check.strictObject({
  next_uid: shared1,
  clean: check.defaulted(
    check.chain(
      check.number(),
      check.integer(),
      check.min(0, "Too small: expected number to be >=0"),
      check.max(10000, "Too big: expected number to be <=10000"),
    ),
    () => 0,
  ),
  quarantined: check.defaulted(check.array(shared1), () => []),
  users: check.record(
    check.string(),
    check.strictObject({
      allocation_id: check.string(),
      uid: shared1,
      state: check.oneOf(
        ["intended", "made", "removing"],
        "Invalid option: expected one of \"intended\"|\"made\"|\"removing\"",
      ),
    }),
    "Invalid key in record",
  ),
}));
