// One background job of the api, for a test that has a part of it and no process.

import type { ApiJobContext } from "../../control-plane/src/api/context.ts";
import { startBackground } from "../../control-plane/src/mechanisms/background/driver.ts";
import type { Job } from "../../control-plane/src/mechanisms/background/job.ts";
import type { Signals } from "../../control-plane/src/mechanisms/signals.ts";
import * as modules from "../../control-plane/src/modules.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { quiet } from "./replica.ts";

const apiJobs: readonly Job<never>[] = Object.values(modules).flatMap((module) => [...module.apiJobs]);

/** Until the end of the test file, with as much of the context as that job needs. */
export function runApiJob(name: string, signals: Signals, context: Partial<ApiJobContext>): void {
  const job = apiJobs.find((one) => one.name === name);
  if (!job) throw new Error(`there is no job ${name}`);
  const background = startBackground({ jobs: [job], context: context as never, signals, log: quiet });
  atEnd(() => background.stop());
}
