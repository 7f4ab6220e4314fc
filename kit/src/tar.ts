// Archives of small text files that every `tar` reads (ustar). Reading is strict: whatever is not a regular file of this form
// is an error, because what one reader skips another may extract.

export type TarFile = { path: string; content: Buffer };

const BLOCK = 512;

export function packTar(files: readonly TarFile[], at: Date): Buffer {
  const blocks = files.flatMap(({ path, content }) => [
    headerOf(path, content.length, at),
    content,
    Buffer.alloc(padding(content.length)),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function headerOf(path: string, size: number, at: Date): Buffer {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`${path} is too long for an archive`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, "0"), offset, "ascii");
  header.write(path, 0, "utf8");
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(at.getTime() / 1000), 136, 12);
  header.write("0", 156, "ascii");
  header.write("ustar\u000000", 257, "ascii");
  // The sum is taken with spaces in its own place.
  header.fill(" ", 148, 156);
  header.write(`${sumOf(header).toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return header;
}

/** Throws for whatever is not such an archive. */
export function unpackTar(archive: Buffer): TarFile[] {
  const files: TarFile[] = [];
  for (let at = 0; ; ) {
    const header = archive.subarray(at, at + BLOCK);
    if (header.length < BLOCK) throw new Error("the archive ends in the middle of a file");
    if (isZero(header)) {
      if (!isZero(archive.subarray(at))) throw new Error("the archive continues after its end");
      return files;
    }
    const { path, size } = readHeader(header);
    const content = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (content.length < size) throw new Error(`${path} is cut off`);
    files.push({ path, content });
    at += BLOCK + size + padding(size);
  }
}

function readHeader(header: Buffer): { path: string; size: number } {
  const text = (from: number, to: number) => header.toString("utf8", from, to).replace(/[\0 ]+$/, "");
  const stated = Number.parseInt(text(148, 156), 8);
  const plain = Buffer.from(header);
  plain.fill(" ", 148, 156);
  if (stated !== sumOf(plain)) throw new Error("a header of the archive is damaged");
  const [path, kind, size] = [text(0, 100), text(156, 157), text(124, 136)];
  if (kind !== "0" || text(257, 262) !== "ustar" || text(345, 500) !== "" || !/^[0-7]{1,11}$/.test(size)) {
    throw new Error(`${JSON.stringify(path)} is not a regular file`);
  }
  return { path, size: Number.parseInt(size, 8) };
}

const padding = (size: number) => (BLOCK - (size % BLOCK)) % BLOCK;
const isZero = (bytes: Buffer) => bytes.every((byte) => byte === 0);
const sumOf = (bytes: Buffer) => bytes.reduce((sum, byte) => sum + byte, 0);
