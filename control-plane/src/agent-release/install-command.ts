// The one line that makes a machine a node. It is printed where an operator trusts what is shown, and carries
// the digest of the installer, which carries those of the archives: so it does not matter that a new machine
// cannot check the server's certificate yet. The token goes through a pipe, because arguments can be read by
// every user of a machine.

import type { AgentRelease } from "./release.ts";

export type InstallOptions = {
  /** Left out: the line upgrades an existing agent. */
  token?: string;
  apiUrl: string;
  /** The machine is a node already and shall be one anew. */
  rejoin?: boolean;
};

export function installCommand({ installer }: AgentRelease, { token, apiUrl, rejoin }: InstallOptions): string {
  const url = `${apiUrl}/agent/install.sh`;
  const run = `sh "$d/i" --api ${apiUrl}${token ? " --token -" : ""}${rejoin ? " --rejoin" : ""}`;
  const installed = token ? `printf '%s\\n' ${token} | ${run}` : run;
  return [
    `(d=$(mktemp -d) && trap 'rm -rf "$d"' EXIT`,
    `&& { curl -fsSk ${url} || wget -qO- --no-check-certificate ${url}; } >"$d/i"`,
    `&& echo "${installer.sha256}  $d/i" | sha256sum -c - >/dev/null && ${installed})`,
  ].join(" ");
}
