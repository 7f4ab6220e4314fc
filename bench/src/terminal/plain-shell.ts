// The shell that every peer runs: bash without anybody's start-up files, in an empty home.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab } from "../lab.ts";

export type PlainShell = { path: string; home: string };

export const plainPrompt = "bench$ ";

export function makePlainShell(lab: Lab): PlainShell {
  const directory = lab.directory();
  const home = join(directory, "home");
  const path = join(directory, "shell");
  mkdirSync(home);
  const environment = `HOME='${home}' PATH=/usr/bin:/bin TERM=xterm-256color LANG=C.UTF-8 PS1='${plainPrompt}'`;
  writeFileSync(path, `#!/bin/sh\ncd '${home}'\nexec env -i ${environment} /bin/bash --norc --noprofile -i\n`);
  chmodSync(path, 0o755);
  return { path, home };
}
