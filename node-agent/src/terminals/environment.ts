// The environment of a login shell: built from scratch, so that nothing of the agent's leaks into it. The
// shell's own start-up files add to it.

import { readFileSync } from "node:fs";
import type { ShellUser } from "@holdfast/tasks/executor";

const localeFiles = ["/etc/default/locale", "/etc/locale.conf"];
const ANY_UTF8 = "C.UTF-8";
const paths = {
  root: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  others: "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games",
};

export function shellEnvironment(user: ShellUser, sessionId: string): Record<string, string> {
  return {
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    PATH: user.uid === 0 ? paths.root : paths.others,
    LANG: localeOf(localeFiles.map(textOf).join("\n")),
    TERM: "xterm-256color",
    COLORTERM: "truecolor",
    HOLDFAST_SESSION_ID: sessionId,
  };
}

/** Terminals use UTF-8 only: any other locale would display wrong characters. */
export function localeOf(settings: string): string {
  const [, named = ""] = /^\s*(?:export\s+)?LANG=["']?([\w.@-]+)["']?\s*$/m.exec(settings) ?? [];
  return /[.]utf-?8\b/i.test(named) ? named : ANY_UTF8;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
