// Who runs the command, as far as the system knows: in a container it may be a bare user id, without
// a name and a home, and Node then throws.

import { homedir, userInfo } from "node:os";

export function homeDirectory(): string | undefined {
  return known(homedir);
}

export function userName(system: () => { username: string } = userInfo): string | undefined {
  return known(() => system().username);
}

function known<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
