// Empty file systems, each in a sparse file. One of each size is made by mke2fs; all others are copies of it, which takes no process:
// of 128 MiB, ten blocks are not empty. They share an identifier, which nothing reads.

import { execFile } from "node:child_process";
import { type FileHandle, open, rm } from "node:fs/promises";
import { promisify } from "node:util";

export type EmptyDisks = {
  /** Writes a file that is not there yet. Nobody else may read it. */
  write(file: string, bytes: number): Promise<void>;
};

/** What is not empty, and where. */
type Content = { at: number; block: Buffer }[];

const exec = promisify(execFile);
export const BLOCK = 4096;
/** Besides data, a file system of this kind has tables. */
const MOST_FILES = 65_536;
/** To read a larger one, which is done once, would take longer than to make many. */
const MOST_COPIED = 256 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;
const EMPTY = Buffer.alloc(READ_BYTES);

export function emptyDisks(): EmptyDisks {
  const made = new Map<number, Promise<Content>>();
  const contentOf = (file: string, bytes: number): Promise<Content> => {
    const known = made.get(bytes);
    if (known) return known;
    const content = makeContent(`${file}.new`, bytes);
    made.set(bytes, content);
    content.catch(() => made.delete(bytes));
    return content;
  };
  return {
    async write(file, bytes) {
      if (bytes > MOST_COPIED) return makeDisk(file, bytes);
      const content = await contentOf(file, bytes);
      await using handle = await open(file, "wx", 0o600);
      for (const { at, block } of content) await handle.write(block, 0, block.length, at);
      await handle.truncate(sizeOf(bytes));
    },
  };
}

async function makeDisk(file: string, bytes: number): Promise<void> {
  // Only its owner may read what a script will write to it.
  await (await open(file, "wx", 0o600)).close();
  const files = Math.min(MOST_FILES, Math.ceil(bytes / BLOCK));
  await exec("mke2fs", [
    ...["-q", "-F", "-t", "ext4", "-m", "0", "-b", String(BLOCK), "-N", String(files)],
    // Nothing is recovered after a crash, and tables that are empty already need no work of the kernel.
    ...["-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=0,nodiscard"],
    ...[file, `${sizeOf(bytes) / 1024}k`],
  ]);
}

async function makeContent(file: string, bytes: number): Promise<Content> {
  try {
    await makeDisk(file, bytes);
    await using handle = await open(file);
    return await contentIn(handle);
  } finally {
    await rm(file, { force: true });
  }
}

async function contentIn(handle: FileHandle): Promise<Content> {
  const content: Content = [];
  const buffer = Buffer.alloc(READ_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, at);
    if (bytesRead === 0) return content;
    const isEmpty = (from: number, to: number) => buffer.compare(EMPTY, 0, to - from, from, to) === 0;
    for (let from = 0; from < bytesRead && !isEmpty(from, bytesRead); from += BLOCK) {
      const to = Math.min(from + BLOCK, bytesRead);
      if (!isEmpty(from, to)) content.push({ at: at + from, block: Buffer.from(buffer.subarray(from, to)) });
    }
    at += bytesRead;
  }
}

/** In whole kibibytes, which is what mke2fs counts in. */
function sizeOf(bytes: number): number {
  return Math.ceil(bytes / 1024) * 1024;
}
