// Writes tar archives that depend on nothing but their content: no times, no users, entries in the order
// given. Node.js has none, and tar(1) differs between hosts.

export type TarEntry = { path: string; content: Buffer; executable?: boolean };

const BLOCK = 512;
/** More than a path of ours ever has, and all that a plain header holds. */
const LONGEST_PATH = 100;

/** Without the end mark: archives may be put behind each other. */
export function tarEntries(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat(
    entries.flatMap(({ path, content, executable }) => [
      header(path, content.length, executable ? 0o755 : 0o644),
      content,
      Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
    ]),
  );
}

export const tarEnd = Buffer.alloc(2 * BLOCK);

function header(path: string, size: number, mode: number): Buffer {
  if (Buffer.byteLength(path) > LONGEST_PATH) throw new Error(`${path} is too long for the archive`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, "0")}\0`, offset, "latin1");
  block.write(path, 0, "utf8");
  octal(mode, 100, 7);
  octal(0, 108, 7); // uid
  octal(0, 116, 7); // gid
  octal(size, 124, 11);
  octal(0, 136, 11); // mtime
  block.write("        ", 148, "latin1"); // The checksum counts as spaces.
  block.write("0", 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  block.write("root", 265, "latin1");
  block.write("root", 297, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}
