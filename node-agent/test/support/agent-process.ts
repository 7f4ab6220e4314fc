// Started as a process of its own: an agent with types that write down each run and then wait to be
// killed. Arguments: state directory, file for the runs.

import { appendFileSync } from "node:fs";
import { runProcess } from "@holdfast/kit/lifecycle";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "../../src/log.ts";
import { startAgent } from "../../src/main.ts";
import { agentSettings } from "../../src/settings.ts";
import { testType } from "./test-types.ts";

const [stateDir = "", runs = ""] = process.argv.slice(2);
const holds = (idempotent: boolean) =>
  testType(
    async ({ params, signal }) => {
      appendFileSync(runs, `${idempotent ? "again" : "once"}\n`);
      if (params["quick"] === true) return { said: "done" };
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    { idempotent, type: idempotent ? "test.again" : "test.once" },
  );
const types = new Map([
  ["test.again", holds(true)],
  ["test.once", holds(false)],
]);

const log = createLog();
await runProcess(
  { info: (text) => log.info(text), fatal: (details, text) => log.error(text, { ...details }) },
  () =>
    startAgent(readSettings(agentSettings, { HOLDFAST_AGENT_STATE_DIR: stateDir, HOLDFAST_AGENT_PORT: "0" }), {
      log,
      loadType: async (name) => types.get(name),
    }),
);
