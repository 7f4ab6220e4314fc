// What can go wrong on the way to a user, put into the words of a task's failures.

import { TaskFailed } from "../executor.ts";
import { ToolRefused } from "./accounts.ts";
import { HomeUnsafe } from "./home.ts";
import { RecordsUnusable } from "./records.ts";
import { ToolMissing } from "./tools.ts";

export type HostFailure = "account_tool_failed" | "users_record_unusable" | "home_unsafe";

export async function withHostFailures<T>(
  fail: (code: HostFailure, message: string) => TaskFailed,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TaskFailed || !(error instanceof Error)) throw error;
    if (error instanceof RecordsUnusable) throw fail("users_record_unusable", error.message);
    if (error instanceof HomeUnsafe) throw fail("home_unsafe", error.message);
    if (error instanceof ToolMissing || error instanceof ToolRefused)
      throw fail("account_tool_failed", error.message);
    throw error;
  }
}
