// Reads DER that anyone may have sent: one way to write each length, nothing after the end, and only the levels of nesting
// that the caller knows. Every departure throws `MalformedDer`.

export class MalformedDer extends Error {
  override name = "MalformedDer";
}

export type Element = {
  tag: number;
  content: Buffer;
  /** With tag and length. */
  bytes: Buffer;
};

/** What the bytes consist of, to the last one: an element of each of these tags, in this order. */
export function read<const Tags extends readonly number[]>(
  bytes: Buffer,
  ...tags: Tags
): { [Index in keyof Tags]: Element } {
  const elements = readAll(bytes);
  if (elements.length !== tags.length || !elements.every((one, index) => one.tag === tags[index])) {
    throw new MalformedDer("other elements than expected");
  }
  return elements as { [Index in keyof Tags]: Element };
}

/** What the bytes consist of: any number of elements, all of this tag if one is given. */
export function readAll(bytes: Buffer, tag?: number): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const one = elementAt(bytes, at);
    if (tag !== undefined && one.tag !== tag) throw new MalformedDer(`an element of the tag ${one.tag}`);
    elements.push(one);
    at += one.bytes.length;
  }
  return elements;
}

/** Tags of several bytes begin with it. None of the formats here has any. */
const LONG_TAG = 0x1f;

function elementAt(bytes: Buffer, at: number): Element {
  const tag = byteAt(bytes, at);
  if ((tag & LONG_TAG) === LONG_TAG) throw new MalformedDer("a tag of several bytes");
  const { length, begins } = lengthAt(bytes, at + 1);
  const ends = begins + length;
  if (ends > bytes.length) throw new MalformedDer("longer than what is around it");
  return { tag, content: bytes.subarray(begins, ends), bytes: bytes.subarray(at, ends) };
}

/** In the shortest form, of three bytes at most: nothing that is read here reaches 64 KiB. */
function lengthAt(bytes: Buffer, at: number): { length: number; begins: number } {
  const first = byteAt(bytes, at);
  if (first < 0x80) return { length: first, begins: at + 1 };
  if (first === 0x81) {
    const length = byteAt(bytes, at + 1);
    if (length >= 0x80) return { length, begins: at + 2 };
  }
  if (first === 0x82) {
    const length = (byteAt(bytes, at + 1) << 8) | byteAt(bytes, at + 2);
    if (length >= 0x100) return { length, begins: at + 3 };
  }
  throw new MalformedDer("a length that is not in its shortest form");
}

function byteAt(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw new MalformedDer("cut short");
  return byte;
}
