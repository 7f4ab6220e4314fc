// Writes the small CD-ROM image that a NoCloud seed is: a flat ISO 9660 volume with Rock Ridge names, because the files of
// a seed have lower-case names with hyphens. Written here so that a VM host needs no tool for it.

export const SECTOR = 2048;
/** Sectors before the first descriptor are the system's. */
const DESCRIPTORS_AT = 16;
const MOST_FILES = 10;

/** Where the root directory begins, and how large the volume is, both in sectors. Without it, as small as possible. */
export type IsoLayout = { rootAt: number; sectors: number };

export function isoImage(volumeId: string, files: Readonly<Record<string, string>>, layout?: IsoLayout): Buffer {
  const entries = Object.entries(files).map(([name, text]) => ({ name, content: Buffer.from(text) }));
  if (entries.length > MOST_FILES) throw new Error(`a seed has at most ${MOST_FILES} files`);
  const pathTableAt = DESCRIPTORS_AT + 2;
  const rootAt = layout?.rootAt ?? pathTableAt + 2;
  let next = rootAt + 1;
  const placed = entries.map((entry) => {
    const at = next;
    next += Math.max(1, Math.ceil(entry.content.length / SECTOR));
    return { ...entry, at };
  });

  const sectors = layout?.sectors ?? next;
  if (next > sectors) throw new Error("the files of a seed are too large");
  const image = Buffer.alloc(sectors * SECTOR);
  const root = directoryRecord({ name: "\0", at: rootAt, size: SECTOR, directory: true });
  primaryDescriptor({ volumeId, sectors, pathTableAt, root }).copy(image, DESCRIPTORS_AT * SECTOR);
  image.set([255, ...Buffer.from("CD001"), 1], (DESCRIPTORS_AT + 1) * SECTOR);
  pathTable(rootAt, "little").copy(image, pathTableAt * SECTOR);
  pathTable(rootAt, "big").copy(image, (pathTableAt + 1) * SECTOR);

  const self = { at: rootAt, size: SECTOR, directory: true };
  const records = [
    directoryRecord({ ...self, name: "\0", extra: [usesRockRidge, attributes(0o040555, 2), rockRidge] }),
    directoryRecord({ ...self, name: "\x01", extra: [attributes(0o040555, 2)] }),
    ...placed.map(({ name, content, at }, index) =>
      directoryRecord({
        ...{ name: `F${index}.;1`, at, size: content.length, directory: false },
        extra: [attributes(0o100444, 1), rockRidgeName(name)],
      }),
    ),
  ];
  const directory = Buffer.concat(records);
  if (directory.length > SECTOR) throw new Error("the names of a seed's files are too long");
  directory.copy(image, rootAt * SECTOR);
  for (const { content, at } of placed) content.copy(image, at * SECTOR);
  return image;
}

/** Numbers are in both byte orders, one after the other. */
function both32(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeUInt32LE(value, 0);
  buffer.writeUInt32BE(value, 4);
  return buffer;
}

function both16(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt16LE(value, 0);
  buffer.writeUInt16BE(value, 2);
  return buffer;
}

function padded(text: string, length: number): Buffer {
  return Buffer.from(text.padEnd(length, " ").slice(0, length), "latin1");
}

function primaryDescriptor(volume: {
  volumeId: string;
  sectors: number;
  pathTableAt: number;
  root: Buffer;
}): Buffer {
  const table = Buffer.alloc(16);
  table.writeUInt32LE(volume.pathTableAt, 0);
  table.writeUInt32BE(volume.pathTableAt + 1, 8);
  const never = Buffer.from(`${"0".repeat(16)}\0`, "latin1");
  return Buffer.concat([
    Buffer.from([1, ...Buffer.from("CD001"), 1, 0]),
    padded("", 32),
    padded(volume.volumeId, 32),
    Buffer.alloc(8),
    both32(volume.sectors),
    Buffer.alloc(32),
    ...[both16(1), both16(1), both16(SECTOR), both32(10), table],
    volume.root,
    padded("", 128 * 4 + 37 * 3),
    ...[never, never, never, never],
    Buffer.from([1, 0]),
  ]);
}

function pathTable(rootAt: number, order: "little" | "big"): Buffer {
  const entry = Buffer.alloc(10);
  entry[0] = 1;
  if (order === "little") {
    entry.writeUInt32LE(rootAt, 2);
    entry.writeUInt16LE(1, 6);
  } else {
    entry.writeUInt32BE(rootAt, 2);
    entry.writeUInt16BE(1, 6);
  }
  return entry;
}

function directoryRecord(record: {
  name: string;
  at: number;
  size: number;
  directory: boolean;
  extra?: readonly Buffer[];
}): Buffer {
  const name = Buffer.from(record.name, "latin1");
  const extra = Buffer.concat(record.extra ?? []);
  const nameEnd = 33 + name.length;
  const extraAt = nameEnd + (nameEnd % 2);
  const buffer = Buffer.alloc(extraAt + extra.length + (extra.length % 2));
  buffer[0] = buffer.length;
  both32(record.at).copy(buffer, 2);
  both32(record.size).copy(buffer, 10);
  // 1970: the seed of a VM has no history.
  buffer.set([70, 1, 1, 0, 0, 0, 0], 18);
  buffer[25] = record.directory ? 2 : 0;
  both16(1).copy(buffer, 28);
  buffer[32] = name.length;
  name.copy(buffer, 33);
  extra.copy(buffer, extraAt);
  return buffer;
}

const usesRockRidge = Buffer.from([...Buffer.from("SP"), 7, 1, 0xbe, 0xef, 0]);
const rockRidge = Buffer.concat([
  Buffer.from([...Buffer.from("ER"), 18, 1, 10, 0, 0, 1]),
  Buffer.from("RRIP_1991A"),
]);

/** Mode, links, user and group. */
function attributes(mode: number, links: number): Buffer {
  const values = [mode, links, 0, 0].map(both32);
  return Buffer.concat([Buffer.from([...Buffer.from("PX"), 36, 1]), ...values]);
}

function rockRidgeName(name: string): Buffer {
  const bytes = Buffer.from(name);
  return Buffer.concat([Buffer.from([...Buffer.from("NM"), 5 + bytes.length, 1, 0]), bytes]);
}
