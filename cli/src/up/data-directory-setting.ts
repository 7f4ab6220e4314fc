// Where an installation on this machine keeps everything. Apart from the other settings of `up`,
// because every command needs it and the others bring the whole control plane along.

import { homedir } from "node:os";
import { join } from "node:path";
import { type Environment, kinds, setting } from "@holdfast/kit/settings";

export const dataDirectorySetting = setting(kinds.path, {
  env: "HOLDFAST_DATA_DIR",
  default: defaultDataDirectory(process.env),
  defaultText: "/var/lib/holdfast as root, else $XDG_DATA_HOME/holdfast or ~/.local/share/holdfast",
  help: "Where `holdfast up` keeps the embedded database, keys, the operator token and logs.",
});

function defaultDataDirectory(env: Environment): string {
  if (process.getuid?.() === 0) return "/var/lib/holdfast";
  return join(env["XDG_DATA_HOME"] || join(homedir(), ".local/share"), "holdfast");
}
