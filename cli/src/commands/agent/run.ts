// holdfast agent run: the agent in the foreground, configured by the environment alone. Imports
// nothing but the agent: whatever is loaded here stays in memory on every host.

import { runProcess } from "@holdfast/kit/lifecycle";
import { readSettings } from "@holdfast/kit/settings";
import { HostProblem } from "@holdfast/node-agent/identity/state-directory";
import { createLog } from "@holdfast/node-agent/log";
import { startAgent } from "@holdfast/node-agent/main";
import { agentSettings, joinSettings } from "@holdfast/node-agent/settings";

export async function runAgent(): Promise<void> {
  let log = createLog();
  await runProcess(
    {
      info: (message) => log.info(message),
      fatal: (details, message) => {
        const { err } = details as { err?: unknown };
        // What a person has to mend first is told like any other command's failure.
        if (err instanceof HostProblem) process.stderr.write(`error: ${err.message}\n`);
        else log.error(message, { error: err });
      },
    },
    async () => {
      const settings = readSettings(agentSettings, process.env);
      // Only joining needs it; here it would stand in the environment of whatever a task starts.
      const { env, aliases } = joinSettings.enrollmentToken;
      for (const name of [env, ...aliases]) delete process.env[name];
      log = createLog({ level: settings.logLevel });
      return startAgent(settings, { log });
    },
  );
}
