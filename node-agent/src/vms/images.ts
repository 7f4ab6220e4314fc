// The base images of this host: which there are, their digests, and whether a VM may be launched from one. A digest belongs
// to a file that has not changed since (device, inode, size, times); it is computed once and kept over restarts.

import { createHash } from "node:crypto";
import { createReadStream, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import type { VmImage } from "@holdfast/contracts/node/vm-host";
import { isErrno, readFileIfPresent, syncDirectory, writeFileDurably } from "@holdfast/kit/files";
import { TaskFailed } from "@holdfast/tasks/executor";
import type { ImageFacts, VmDriver } from "../drivers/qemu/driver.ts";
import { ImageDigests } from "./record.generated.ts";

export type PinnedImage = {
  id: string;
  sha256: string;
  path: string;
  dev: bigint;
  ino: bigint;
  virtualBytes: number;
};

export type Images = {
  /** As far as known; digests follow. */
  list(of: {
    references: (id: string) => number;
    isFetched: (image: { id: string; sha256: string | null }) => boolean;
  }): VmImage[];
  /** Looks for new and changed images, and computes what is not known of them. */
  refresh(): Promise<void>;
  /** Throws a TaskFailed unless the image is there, usable, and has this digest. */
  verify(id: string, sha256: string): Promise<PinnedImage>;
  /** Throws a TaskFailed if the file is no longer the one that was verified. */
  verifyUnchanged(image: PinnedImage): void;
  /** Computes it if it is not known. */
  digestOf(id: string): Promise<string | undefined>;
  /** Of the file as it is now; undefined: it was not computed yet. */
  knownDigest(id: string): string | undefined;
  /** Gives a verified file the name of the image; its digest is not computed again. */
  place(id: string, file: string, sha256: string): Promise<void>;
  /** After its file was removed. */
  forget(id: string): void;
};

const idForm = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const MOST_IMAGES = 256;

type Known = { key: string; sha256: string | undefined; facts: ImageFacts | undefined };

export function createImages(options: {
  directory: string;
  stateDir: string;
  driver: Pick<VmDriver, "inspectImage">;
  onChange: () => void;
}): Images {
  const { directory, driver } = options;
  const known = new Map<string, Known>();
  const stateFile = join(options.stateDir, "vm-images.json");
  const digests = readDigests(stateFile);
  const pathOf = (id: string) => join(directory, `${id}.qcow2`);

  /** Concurrent calls for one file share its computation. */
  const learning = new Map<string, Promise<Known>>();
  const learn = (id: string): Promise<Known> => {
    const key = keyOf(pathOf(id));
    const present = known.get(id);
    if (present?.key === key && present.sha256 !== undefined) return Promise.resolve(present);
    const running = learning.get(key) ?? compute(id, key).finally(() => learning.delete(key));
    learning.set(key, running);
    return running;
  };
  const compute = async (id: string, key: string): Promise<Known> => {
    known.set(id, { key, sha256: undefined, facts: undefined });
    const path = pathOf(id);
    const facts = await driver
      .inspectImage(path)
      .catch((error: Error) => ({ virtualBytes: 0, problem: error.message }));
    const sha256 = digests.get(key) ?? (await sha256Of(path));
    // A file that was written meanwhile has a digest of neither state.
    if (keyOf(path) !== key) return { key: "", sha256: undefined, facts };
    const learnt = { key, sha256, facts };
    known.set(id, learnt);
    if (digests.get(key) !== sha256) {
      digests.set(key, sha256);
      writeDigests(stateFile, digests, [...known.values()]);
    }
    options.onChange();
    return learnt;
  };

  const ids = () => {
    try {
      return readdirSync(directory)
        .flatMap((name) => /^(.+)[.]qcow2$/.exec(name)?.[1] ?? [])
        .filter((id) => idForm.test(id))
        .sort()
        .slice(0, MOST_IMAGES);
    } catch {
      return [];
    }
  };

  return {
    list: ({ references, isFetched }) =>
      ids().flatMap((id) => {
        const size = sizeOf(pathOf(id));
        if (size === undefined) return [];
        const entry = known.get(id);
        const sha256 = entry?.sha256 ?? null;
        return {
          ...{ id, sha256, file_bytes: size, references: references(id), fetched: isFetched({ id, sha256 }) },
          virtual_bytes: entry?.facts?.virtualBytes ?? null,
          problem: entry?.facts?.problem?.slice(0, 400) ?? null,
        };
      }),
    async refresh() {
      const present = ids();
      for (const id of known.keys()) if (!present.includes(id)) known.delete(id);
      for (const id of present) await learn(id).catch(() => undefined);
    },
    async verify(id, sha256) {
      const path = pathOf(id);
      if (!idForm.test(id) || sizeOf(path) === undefined)
        throw new TaskFailed("vm_image_missing", `${path} does not exist.`);
      const found = await learn(id).catch((error: Error) => {
        throw new TaskFailed("vm_image_missing", `${path}: ${error.message}`);
      });
      if (found.facts?.problem !== undefined)
        throw new TaskFailed("vm_image_unusable", `${path}: ${found.facts.problem}.`);
      if (found.sha256 !== sha256)
        throw new TaskFailed(
          "vm_image_changed",
          `${path} has SHA-256 ${found.sha256 ?? "that changes"}; ${sha256} was expected.`,
        );
      const { dev, ino } = statSync(path, { bigint: true });
      return { ...{ id, sha256, path, dev, ino }, virtualBytes: found.facts?.virtualBytes ?? 0 };
    },
    verifyUnchanged({ id, sha256, path }) {
      const entry = known.get(id);
      if (entry?.sha256 !== sha256 || keyIfPresent(path) !== entry.key)
        throw new TaskFailed(
          "vm_image_changed",
          `${path} was changed or replaced while a VM was launched from it.`,
        );
    },
    digestOf: async (id) => (await learn(id)).sha256,
    knownDigest(id) {
      const entry = known.get(id);
      return entry && keyIfPresent(pathOf(id)) === entry.key ? entry.sha256 : undefined;
    },
    async place(id, file, sha256) {
      renameSync(file, pathOf(id));
      syncDirectory(directory);
      const key = keyOf(pathOf(id));
      digests.set(key, sha256);
      known.set(id, { key, sha256: undefined, facts: undefined });
      writeDigests(stateFile, digests, [...known.values()]);
      await learn(id);
    },
    forget: (id) => void known.delete(id),
  };
}

/** What identifies an unchanged file. */
function keyOf(path: string): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

function keyIfPresent(path: string): string | undefined {
  try {
    return keyOf(path);
  } catch {
    return undefined;
  }
}

function sizeOf(path: string): number | undefined {
  try {
    const stat = statSync(path);
    return stat.isFile() ? stat.size : undefined;
  } catch (error) {
    if (isErrno(error, "ENOENT") || isErrno(error, "EACCES") || isErrno(error, "ENOTDIR")) return undefined;
    throw error;
  }
}

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer);
  return hash.digest("hex");
}

function readDigests(path: string): Map<string, string> {
  try {
    const text = readFileIfPresent(path);
    return new Map(text === undefined ? [] : Object.entries(ImageDigests.parse(JSON.parse(text))));
  } catch {
    return new Map();
  }
}

/** Only of files that are there: others will not come back with the same times. */
function writeDigests(path: string, digests: Map<string, string>, known: readonly Known[]): void {
  const present = new Set(known.map(({ key }) => key));
  for (const key of digests.keys()) if (!present.has(key)) digests.delete(key);
  try {
    writeFileDurably(path, `${JSON.stringify(Object.fromEntries(digests))}\n`, 0o600);
  } catch {
    // Computed again after a restart.
  }
}
