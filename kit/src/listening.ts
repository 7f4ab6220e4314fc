// Why a listener could not open its port: which process has it, and which setting
// changes it.

import { isErrno } from "./files.ts";
import { holderOfPort } from "./processes.ts";
import { UsageError } from "./settings.ts";

/** `setting` is the name of the setting that changes the port. */
export type Listener = { process: string; port: number; bind: string; setting: string };

export function explainListenError(error: Error, listener: Listener): UsageError {
  const { process: name, port, bind, setting } = listener;
  if (isErrno(error, "EADDRINUSE")) {
    return new UsageError(
      `Port ${port} for the ${name} is in use by ${describeHolder(port)}. ` +
        `Stop it, or set ${setting} to another port (0 chooses a free one).`,
    );
  }
  if (isErrno(error, "EACCES")) {
    return new UsageError(`Port ${port} for the ${name} requires root. Set ${setting} to a port above 1023.`);
  }
  return new UsageError(`The ${name} cannot listen on ${bind}:${port}: ${error.message}. The port is ${setting}.`);
}

function describeHolder(port: number): string {
  const holder = holderOfPort(port);
  if (holder?.pid === undefined) return "a process of another user";
  return `pid ${holder.pid} (${(holder.command ?? "unknown command").slice(0, 120)})`;
}
