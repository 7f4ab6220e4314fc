// Checks before anything starts whether the ports are free, because here the message can name which process
// uses one and which setting changes it.

import { createServer } from "node:net";
import { explainListenError, type Listener } from "@holdfast/kit/listening";
import { UsageError } from "@holdfast/kit/settings";

export async function checkPorts(listeners: Listener[]): Promise<void> {
  const fixed = listeners.filter(({ port }) => port !== 0);
  // First: two that want the same port would take each other for a stranger.
  const shared = sharedPorts(fixed);
  if (shared.length > 0) throw new UsageError(shared.join("\n"));
  const problems = (await Promise.all(fixed.map(problemWith))).filter((text) => text !== undefined);
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
}

async function problemWith(listener: Listener): Promise<string | undefined> {
  const error = await tryToListen(listener.port, listener.bind);
  return error && explainListenError(error, listener).message;
}

function tryToListen(port: number, host: string): Promise<Error | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function sharedPorts(listeners: Listener[]): string[] {
  return listeners.flatMap((one, index) =>
    listeners
      .slice(index + 1)
      .filter((other) => other.port === one.port)
      .map((other) => `${one.setting} and ${other.setting} are both ${one.port}. Change one of them.`),
  );
}
