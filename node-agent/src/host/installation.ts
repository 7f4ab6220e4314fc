// The files that decide how the agent on this host runs. Only their digests leave the host: they may hold secrets.

import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AgentSetup } from "@holdfast/contracts/node/protocol";

export type Installation = Pick<AgentSetup, "install_root" | "unit_sha256" | "env_sha256">;

/** Of the service manager, by the installer or the package of each system. */
const units = ["etc/systemd/system/holdfast-agent.service", "usr/local/etc/rc.d/holdfast_agent"];
const LONGEST = 200;
/** Both are far smaller; whatever else is there is not read into memory. */
const MOST_BYTES = 1024 * 1024;

/** `program`: the file that was started. `root`: where units are found; tests provide a tree. */
export function watchInstallation(options: {
  stateDir: string;
  program: string;
  root?: string;
}): () => Installation {
  const { stateDir, program, root = "/" } = options;
  const install_root = rootOf(program);
  const unitDigests = units.map((path) => digestOf(join(root, path)));
  const envDigest = digestOf(join(stateDir, "agent.env"));
  return () => ({
    install_root,
    unit_sha256: unitDigests.reduce<string | null>((found, digest) => found ?? digest(), null),
    env_sha256: envDigest(),
  });
}

/** Two levels up, as in /opt/holdfast-agent/versions/1.2.3/lib/agent.mjs. */
function rootOf(program: string): string | null {
  try {
    const path = dirname(dirname(realpathSync(program)));
    return path.length <= LONGEST && path.isWellFormed() ? path : null;
  } catch {
    return null;
  }
}

/** Null: there is no such file, or it cannot be read. Read again only when it was changed or replaced. */
function digestOf(path: string): () => string | null {
  let known: { version: string; digest: string | null } | undefined;
  return () => {
    try {
      const found = statSync(path, { throwIfNoEntry: false });
      if (!found?.isFile() || found.size > MOST_BYTES) return null;
      const version = `${found.ino}:${found.mtimeMs}:${found.size}`;
      if (known?.version !== version) known = { version, digest: sha256(path) };
      return known.digest;
    } catch {
      return null;
    }
  };
}

function sha256(path: string): string | null {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return null;
  }
}
