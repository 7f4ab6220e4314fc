// Makes the archive that a machine needs to become a node: Node.js, the bundled agent, the PTY's native
// code, the unit files, the installer. The same inputs give the same bytes, so its name can carry its digest.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type Arch, integrityOf, nodePackage, ptyPackage } from "./packages.ts";
import { type TarEntry, tarEnd, tarEntries } from "./tar.ts";

export type PackedArchive = { arch: Arch; file: string; sha256: string; bytes: number; unpacked_bytes: number };

const root = fileURLToPath(new URL("../..", import.meta.url));
const top = "holdfast-agent";
/** 9 saves 0.3 % and takes a third longer. */
const LEVEL = 6;
/** Licences of what is inside, by package. */
const licensed = ["@lydell/node-pty", "commander", "nodemailer", "ws"];

export function packArchive(options: {
  arch: Arch;
  version: string;
  bundle: ReadonlyMap<string, string>;
  directory: string;
  cache: string;
}): PackedArchive {
  const { arch, version, bundle, directory, cache } = options;
  const pty = ptyPackage(arch, cache);
  const modules = "lib/node_modules/@lydell";
  const entries = [
    file("bin/holdfast", join(root, "deploy/holdfast-agent.sh"), true),
    ...[...bundle].map(([name, code]) => text(`lib/${name}`, code)),
    file(`${modules}/node-pty/package.json`, join(root, "node_modules/@lydell/node-pty/package.json")),
    file(`${modules}/node-pty-linux-${arch}/package.json`, join(pty, "package.json")),
    file(`${modules}/node-pty-linux-${arch}/pty.node`, join(pty, "pty.node"), true),
    file("share/install-agent.sh", join(root, "deploy/install-agent.sh")),
    file("share/last-words.sh", join(root, "deploy/last-words.sh")),
    file("share/holdfast-agent.service", join(root, "deploy/systemd/holdfast-agent.service")),
    file("share/LICENSE", join(root, "LICENSE")),
    file("share/licenses/node", join(nodePackage(arch, cache), "LICENSE")),
    ...licensed.map((name) =>
      file(`share/licenses/${name.split("/").at(-1)}`, join(root, "node_modules", name, "LICENSE")),
    ),
    text("VERSION", `${version} linux-${arch}\n`),
  ];
  const rest = tarEntries(entries);
  const node = nodePart(arch, cache);
  // Two gzip members behind each other are one gzip file; the first hardly ever changes and takes seconds.
  const archive = Buffer.concat([node.compressed, gzipSync(Buffer.concat([rest, tarEnd]), { level: LEVEL })]);
  const sha256 = createHash("sha256").update(archive).digest("hex");
  const name = `${top}-${version}-linux-${arch}-${sha256.slice(0, 16)}.tar.gz`;
  writeWhole(join(directory, name), archive);
  return { arch, file: name, sha256, bytes: archive.length, unpacked_bytes: node.bytes + rest.length };
}

function file(path: string, from: string, executable = false): TarEntry {
  return { path: `${top}/${path}`, content: readFileSync(from), executable };
}

function text(path: string, content: string): TarEntry {
  return { path: `${top}/${path}`, content: Buffer.from(content) };
}

function nodePart(arch: Arch, cache: string): { compressed: Buffer; bytes: number } {
  const { version, integrity } = integrityOf(`node-linux-${arch}`);
  const key = createHash("sha256").update(integrity).digest("hex").slice(0, 16);
  const kept = join(cache, `node-${version}-${arch}-${key}-${LEVEL}.gz`);
  const binary = join(nodePackage(arch, cache), "bin/node");
  if (!existsSync(kept)) {
    mkdirSync(cache, { recursive: true });
    writeWhole(kept, gzipSync(tarEntries([file("bin/node", binary, true)]), { level: LEVEL }));
  }
  const compressed = readFileSync(kept);
  // gzip ends with the size of what is inside.
  return { compressed, bytes: compressed.readUInt32LE(compressed.length - 4) };
}

function writeWhole(path: string, content: Buffer): void {
  writeFileSync(`${path}.${process.pid}.tmp`, content);
  renameSync(`${path}.${process.pid}.tmp`, path);
}
