// The agent that this server hands out: which archives there are, and the installer with their digests in it.
// They are packed when the checkout is prepared (scripts/pack-agent.ts), or later while the api runs.

import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Log } from "@holdfast/service/log";
import { z } from "zod";

const Archive = z.strictObject({
  arch: z.enum(["x64", "arm64"]),
  file: z.string().regex(/^[\w.-]+\.tar\.gz$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int(),
  unpacked_bytes: z.int(),
});
const Release = z.strictObject({ version: z.string().regex(/^[\w.+-]+$/), archives: z.array(Archive) });

export type AgentRelease = z.infer<typeof Release> & {
  /** Where the archives are. */
  directory: string;
  installer: { text: string; sha256: string };
};

export type AgentReleases = {
  /** Undefined: none was packed. */
  current(): AgentRelease | undefined;
  /** Under way, from both listeners together. */
  downloads: number;
};

const packed = fileURLToPath(new URL("../../../node-agent/dist", import.meta.url));
const installer = fileURLToPath(new URL("../../../deploy/install-agent.sh", import.meta.url));

export function openAgentReleases(log: Log, directory = packed): AgentReleases {
  const file = join(directory, "release.json");
  let known: { version: string; release: AgentRelease | undefined } | undefined;
  return {
    downloads: 0,
    current() {
      // It is replaced by a rename: what is read is whole, and a new one has another inode, if not another time.
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) return undefined;
      const version = `${found.ino}:${found.mtimeMs}:${found.size}`;
      if (known?.version !== version) known = { version, release: read(file, directory, log) };
      return known.release;
    },
  };
}

function read(file: string, directory: string, log: Log): AgentRelease | undefined {
  try {
    const release = Release.parse(JSON.parse(readFileSync(file, "utf8")));
    const text = filledIn(readFileSync(installer, "utf8"), release);
    return { ...release, directory, installer: { text, sha256: createHash("sha256").update(text).digest("hex") } };
  } catch (error) {
    log.error({ err: error, file }, "the packed agent cannot be handed out; pack it again: npm run pack-agent");
    return undefined;
  }
}

/** Nothing in these values can end the quotes they are put between. */
function filledIn(script: string, { version, archives }: z.infer<typeof Release>): string {
  const values: Record<string, string> = { SERVED_VERSION: version, SERVED_X64: "", SERVED_ARM64: "" };
  for (const { arch, file, sha256, bytes, unpacked_bytes } of archives) {
    values[`SERVED_${arch.toUpperCase()}`] = `${file} ${sha256} ${bytes} ${unpacked_bytes}`;
  }
  return Object.entries(values).reduce((text, [name, value]) => {
    const empty = `\n${name}=''\n`;
    if (!text.includes(empty)) throw new Error(`the installer has no place for ${name}`);
    return text.replace(empty, () => `\n${name}='${value}'\n`);
  }, script);
}
