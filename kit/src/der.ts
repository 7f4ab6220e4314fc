// Writes DER, the encoding of certificates and of requests for them. An element is its tag, its length and its content;
// the content of a constructed one is elements.

export const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** `[number]` in the field's definition, around elements. */
export function constructed(number: number): number {
  return 0xa0 | number;
}

/** `[number]` in the field's definition, in place of a simple element's own tag. */
export function primitive(number: number): number {
  return 0x80 | number;
}

export function element(tagByte: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([header(tagByte, content), ...parts]);
}

/** One byte of length up to 127; beyond, the number of bytes and then the bytes. */
function header(tagByte: number, length: number): Buffer {
  if (length < 0x80) return Buffer.from([tagByte, length]);
  if (length < 0x100) return Buffer.from([tagByte, 0x81, length]);
  if (length < 0x10000) return Buffer.from([tagByte, 0x82, length >> 8, length & 0xff]);
  throw new RangeError(`an element of ${length} bytes`);
}

/** The whole bytes of a bit string: none of its last bits is unused. */
export function bitString(bytes: Uint8Array): Buffer {
  return element(tag.bitString, Buffer.from([0]), bytes);
}

export function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
