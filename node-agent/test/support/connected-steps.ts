// An agent with settings of the test, connected to a stand-in gateway that sends it shell steps.

import { readdirSync } from "node:fs";
import { hierarchiesOfHost } from "../../src/drivers/sandbox/cgroups/hierarchies.ts";
import { startTestExecutionAgent } from "./execution-agent.ts";
import { startStandInGateway } from "./stand-in-gateway.ts";

export async function connectedSteps(env: Record<string, string>) {
  const gateway = await startStandInGateway();
  const agent = await startTestExecutionAgent(gateway, { env });
  const socket = await gateway.socket();
  const step = async (
    script: string,
    { sandbox, ...more }: { timeoutMs?: number; sandbox?: object; secret?: string } = {},
  ) => {
    const order = gateway.shell(script, { config: sandbox ? { sandbox } : {}, ...more });
    socket.send(order);
    const { status, error, output } = await gateway.result(order.requestId);
    return { status, error, output };
  };
  /** On the host, of this agent. */
  const cgroups = () =>
    hierarchiesOfHost().flatMap(({ parent }) =>
      readdirSync(parent).filter((name) => name.includes(gateway.agentId)),
    );
  return { gateway, agent, socket, step, cgroups };
}
