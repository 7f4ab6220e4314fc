// Looks before anything starts whether the ports are free, because a person can be told here who
// holds one and which setting changes it.

import { createServer } from "node:net";
import { isErrno } from "@holdfast/kit/files";
import { holderOfPort } from "@holdfast/kit/processes";
import { UsageError } from "@holdfast/kit/settings";

/** `setting` is the name of the setting that changes the port. */
export type Listener = { process: string; port: number; bind: string; setting: string };

export async function checkPorts(listeners: Listener[]): Promise<void> {
  const fixed = listeners.filter(({ port }) => port !== 0);
  const problems = (await Promise.all(fixed.map(problemWith))).filter((text) => text !== undefined);
  problems.push(...sharedPorts(fixed));
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
}

async function problemWith(listener: Listener): Promise<string | undefined> {
  const { process: name, port, bind, setting } = listener;
  const error = await tryToListen(port, bind);
  if (error === undefined) return undefined;
  if (isErrno(error, "EADDRINUSE")) {
    return `Port ${port} for the ${name} is taken by ${describeHolder(port)}. Stop it, or set ${setting} to another port (0 takes a free one).`;
  }
  if (isErrno(error, "EACCES")) {
    return `Port ${port} for the ${name} needs root. Set ${setting} to a port above 1023.`;
  }
  return `The ${name} cannot listen on ${bind}:${port}: ${error.message}. The port is ${setting}.`;
}

function tryToListen(port: number, host: string): Promise<Error | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function describeHolder(port: number): string {
  const holder = holderOfPort(port);
  if (holder?.pid === undefined) return "a process of another user";
  return `pid ${holder.pid} (${(holder.command ?? "unknown command").slice(0, 120)})`;
}

function sharedPorts(listeners: Listener[]): string[] {
  return listeners.flatMap((one, index) =>
    listeners
      .slice(index + 1)
      .filter((other) => other.port === one.port)
      .map((other) => `${one.setting} and ${other.setting} are both ${one.port}. Change one of them.`),
  );
}
