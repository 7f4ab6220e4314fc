// Every bench there is. A new one is a file beside this and a line here.

import type { Bench } from "../bench.ts";
import { agent } from "./agent.ts";
import { dispatch } from "./dispatch.ts";
import { drift } from "./drift.ts";
import { engine } from "./engine.ts";
import { execute } from "./execute.ts";
import { fleet } from "./fleet.ts";
import { idle } from "./idle.ts";
import { issuing } from "./issuing.ts";
import { me } from "./me.ts";
import { recovery } from "./recovery.ts";
import { sandbox } from "./sandbox.ts";
import { soak } from "./soak.ts";
import { startup } from "./startup.ts";
import { terminal } from "./terminal.ts";
import { workflow } from "./workflow.ts";

export const allBenches: Bench[] = [
  startup,
  me,
  engine,
  dispatch,
  execute,
  workflow,
  idle,
  agent,
  terminal,
  issuing,
  drift,
  fleet,
  recovery,
  sandbox,
  soak,
];
