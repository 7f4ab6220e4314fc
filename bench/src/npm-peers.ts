// Peers from npm that are too large and too foreign for our lockfile. Each is installed when a bench first
// asks for it, in exactly one version, and kept beside our own packages. wetty compiles its PTY module on the
// way, so it needs a C++ compiler, make and Python; the headers come from the Node.js that runs this, not from the network
// or from somebody's npm configuration.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { plainEnvironment, root } from "./program.ts";

const versions = { wetty: "3.2.0", meshcentral: "1.1.55", "graphile-worker": "0.18.0", "pg-boss": "12.30.0" };

export type NpmPeer = { version: string; directory: string; require: NodeJS.Require };

export async function installPeer(name: keyof typeof versions): Promise<NpmPeer> {
  const version = versions[name];
  const cache = join(root, "node_modules/.cache/holdfast-bench");
  const installed = join(cache, `${name}-${version}`);
  if (!existsSync(installed)) {
    process.stderr.write(`installing ${name} ${version} (only the first time; a minute or two)\n`);
    const unfinished = `${installed}.${process.pid}`;
    mkdirSync(unfinished, { recursive: true });
    try {
      const flags = ["--no-audit", "--no-fund", "--loglevel=error"];
      await promisify(execFile)("npm", ["install", "--prefix", unfinished, ...flags, `${name}@${version}`], {
        // How npm reaches its registry (proxy, certificates) may stand in the environment or below HOME.
        env: { ...process.env, ...plainEnvironment, ...nodeHeaders() },
      });
      renameSync(unfinished, installed);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  const directory = join(installed, "node_modules", name);
  return { version, directory, require: createRequire(join(directory, "package.json")) };
}

/** Where node-gyp finds them; nothing if this Node.js came without, and node-gyp downloads them then. */
function nodeHeaders(): Record<string, string> {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  return existsSync(join(prefix, "include/node/node.h")) ? { npm_config_nodedir: prefix } : {};
}
