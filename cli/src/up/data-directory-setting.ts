// Where an installation on this machine keeps everything. Apart from the other settings of `up`,
// because every command needs it and the others bring the whole control plane along.

import { join } from "node:path";
import { type Environment, kinds, setting } from "@holdfast/kit/settings";
import { homeDirectory } from "../home.ts";

export const dataDirectorySetting = setting(kinds.path, {
  env: "HOLDFAST_DATA_DIR",
  default: defaultDataDirectory(process.env),
  defaultText: "/var/lib/holdfast as root, else $XDG_DATA_HOME/holdfast or ~/.local/share/holdfast",
  help: "Directory in which `holdfast up` stores the embedded database, keys, the operator token and logs.",
});

function defaultDataDirectory(env: Environment): string {
  const home = homeDirectory();
  const ofUser = env["XDG_DATA_HOME"] || (home && join(home, ".local/share"));
  // Without a home the start refuses what it may not write, and names this setting.
  return process.getuid?.() === 0 || !ofUser ? "/var/lib/holdfast" : join(ofUser, "holdfast");
}
