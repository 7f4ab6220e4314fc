// npm run pack-agent [-- x64 arm64]: makes the archives that the api serves to machines which shall become
// nodes, in node-agent/dist. Without arguments for this machine's processor, and for others that were packed
// before. `release.json` there says which there are; the api reads nothing else.

import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { agentVersion } from "@holdfast/node-agent/version";
import { type PackedArchive, packArchive } from "./agent-archive/archive.ts";
import { bundleAgent } from "./agent-archive/bundle.ts";
import { type Arch, arches } from "./agent-archive/packages.ts";
import { writeCheckModules } from "./agent-checks/modules.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const directory = join(root, "node-agent/dist");
const releaseFile = join(directory, "release.json");
const cache = join(root, "node_modules/.cache/holdfast-agent");

type Release = { version: string; archives: PackedArchive[] };

const unknown = process.argv.slice(2).filter((name) => !(arches as readonly string[]).includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no agent for ${unknown.join(", ")}. Give any of: ${arches.join(", ")}\n`);
  process.exit(2);
}

mkdirSync(directory, { recursive: true });
// Also for agents that run from this checkout: it is packed when it is prepared.
await writeCheckModules(root);
const bundle = await bundleAgent({ version: agentVersion });
const archives = wanted().map((arch) => packArchive({ arch, version: agentVersion, bundle, directory, cache }));
const release: Release = { version: agentVersion, archives };
writeFileDurably(releaseFile, `${JSON.stringify(release, null, 2)}\n`, 0o644);
for (const name of readdirSync(directory)) {
  if (name.endsWith(".tar.gz") && !archives.some(({ file }) => file === name)) rmSync(join(directory, name));
}
for (const { file, bytes, sha256 } of archives) {
  process.stdout.write(`${file} ${Math.round(bytes / 1e6)} MB, SHA-256 ${sha256}\n`);
}

function wanted(): Arch[] {
  const before = JSON.parse(readFileIfPresent(releaseFile) ?? '{"archives":[]}') as Release;
  const named = new Set([process.arch, ...process.argv.slice(2), ...before.archives.map(({ arch }) => arch)]);
  return arches.filter((arch) => named.has(arch));
}
