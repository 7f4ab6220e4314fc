// holdfast agent run: the agent in the foreground, configured by the environment alone. Imports
// nothing but the agent: whatever is loaded here stays in memory on every host.

import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { runProcess } from "@holdfast/kit/lifecycle";
import { superviseBundles } from "@holdfast/node-agent/bundle/supervise";
import { hasIdentity } from "@holdfast/node-agent/identity/has-identity";
import { HostProblem } from "@holdfast/node-agent/identity/state-directory";
import { createLog, type Log } from "@holdfast/node-agent/log";
import { type AgentSettings, type RunningAgent, startAgent } from "@holdfast/node-agent/main";
import { openServiceManager, type ServiceManager } from "@holdfast/node-agent/service-manager";
import { agentSettings, joinSettings, readAgentSettings } from "@holdfast/node-agent/settings";

export async function runAgent(): Promise<void> {
  let log = createLog();
  const manager = openServiceManager(process.env);
  await runProcess(
    {
      info: (message) => log.info(message),
      fatal: (details, message) => {
        const { err } = details as { err?: unknown };
        // A problem that a person has to repair first is printed like the failure of any other command.
        if (err instanceof HostProblem) process.stderr.write(`error: ${err.message}\n`);
        else log.error(message, { error: err });
      },
    },
    async () => {
      const settings = readAgentSettings(process.env);
      // Left here, every process that a task starts would inherit them.
      const { enrollmentToken, bootstrapToken } = joinSettings;
      for (const { env, aliases } of [enrollmentToken, bootstrapToken, agentSettings.recoveryToken]) {
        for (const name of [env, ...aliases]) delete process.env[name];
      }
      log = createLog({ level: settings.logLevel });
      for (const warning of warningsAboutUnsupported(process.env)) log.warn(warning);
      const agent = await start(settings, log, manager);
      manager?.ready();
      manager?.watch(agent.isAlive);
      return {
        ...agent,
        stop: () => {
          manager?.stopping();
          return agent.stop();
        },
      };
    },
  );
}

async function start(
  { bootstrapToken, ...others }: AgentSettings,
  log: Log,
  manager: ServiceManager | undefined,
): Promise<RunningAgent> {
  const settings = { ...others, bootstrapToken: undefined };
  const onStatus = manager?.status;
  const startWith = async (inForce: AgentSettings) => {
    const begin = () => startAgent(inForce, { log, onStatus });
    if (bootstrapToken === undefined || hasIdentity(inForce.stateDir)) return begin();
    const { startUnjoined } = await import("@holdfast/node-agent/bootstrap");
    return startUnjoined({ ...inForce, bootstrapToken }, { log, start: begin, onStatus });
  };
  return superviseBundles({ settings, log, start: startWith });
}
