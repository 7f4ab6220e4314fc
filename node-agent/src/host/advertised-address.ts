// Whether the address that the owner of a host advertises leads to the agent's listener: its name is resolved and its port compared. Nothing
// ever connects to it.

import { lookup } from "node:dns/promises";
import type { Log } from "../log.ts";

/** `host`, `host:port` or `[v6]:port`. Undefined: it is neither. */
export function parseAdvertised(text: string): { host: string; port: number | undefined } | undefined {
  const found =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)|([0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F.:]*))(?::(\d{1,5}))?$/.exec(text);
  const host = found?.[1] ?? found?.[2] ?? found?.[3];
  const port = found?.[4] === undefined ? undefined : Number(found[4]);
  if (host === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  return { host, port };
}

/** What is wrong with it, and what to do; undefined: nothing that can be seen from here. */
export async function problemOfAdvertised(
  text: string,
  listener: { port: number },
  resolve: (host: string) => Promise<unknown> = lookup,
): Promise<string | undefined> {
  const address = parseAdvertised(text);
  if (!address)
    return `NODE_AGENT_ADVERTISE_ADDR is ${text}, which is no address. Use <host>:<port>, such as 192.0.2.10:9000.`;
  if (address.port !== undefined && address.port !== listener.port)
    return (
      `NODE_AGENT_ADVERTISE_ADDR has the port ${address.port}, and the agent listens on ${listener.port}. ` +
      "Correct the address, or set HOLDFAST_AGENT_PORT to its port, and restart the agent."
    );
  try {
    await resolve(address.host);
    return undefined;
  } catch {
    return `NODE_AGENT_ADVERTISE_ADDR does not resolve: ${address.host}. Use an IP address, or a name that DNS or /etc/hosts has.`;
  }
}

/** Compares the address once the listener is open. `problem`: null: none is known. */
export function watchAdvertised(address: string | undefined, log: Log) {
  let problem: string | null = null;
  return {
    problem: () => problem,
    async compare(listener: { port: number }): Promise<void> {
      problem = address === undefined ? null : ((await problemOfAdvertised(address, listener)) ?? null);
      if (problem !== null) log.warn("the advertised address is wrong", { problem });
    },
  };
}
