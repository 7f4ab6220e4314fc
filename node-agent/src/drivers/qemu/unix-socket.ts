// Connects to a socket by its path, however long that is: the kernel takes 107 bytes, and directories of VMs have the id of
// a VM in their names.

import { closeSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { basename, dirname } from "node:path";

export function connectTo(path: string): Promise<Socket> {
  const directory = openSync(dirname(path), "r");
  return new Promise<Socket>((resolve, reject) => {
    const socket = connect(`/proc/self/fd/${directory}/${basename(path)}`);
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  }).finally(() => closeSync(directory));
}
