// @ts-check
// The newest output of a PTY with its absolute offsets. It is read into blocks that are never written
// twice: what is on its way to the agent and what is kept for later are the same bytes, and nothing is copied.

const BLOCK = 64 * 1024;
/** A PTY gives 4 KB at most: less room than that would make two reads of one. */
const LEAST_ROOM = 4096;

/** @param {number} most kept */
export function createScrollback(most) {
  /** @type {{ offset: number, bytes: Buffer, used: number }[]} */
  const blocks = [];
  let end = 0;

  const oldest = () => Math.max(blocks[0]?.offset ?? end, end - most);

  return {
    get end() {
      return end;
    },
    get start() {
      return oldest();
    },

    /** Where the next output is to be read into. */
    room() {
      const last = blocks.at(-1);
      if (last && BLOCK - last.used >= LEAST_ROOM) return last.bytes.subarray(last.used);
      const block = { offset: end, bytes: Buffer.allocUnsafeSlow(BLOCK), used: 0 };
      blocks.push(block);
      while ((blocks[1]?.offset ?? end) <= end - most) blocks.shift();
      return block.bytes;
    },

    /** So much was read into the room. @param {number} count */
    filled(count) {
      const last = blocks.at(-1);
      if (last) last.used += count;
      end += count;
    },

    /** @param {number} offset @returns {Buffer[]} */
    from(offset) {
      return blocks
        .filter((block) => block.offset + block.used > offset)
        .map((block) => block.bytes.subarray(Math.max(0, offset - block.offset), block.used));
    },

    /**
     * Where a replay begins: as asked, as far as it is kept. What is cut off somewhere begins with a whole character.
     * @param {number | null} asked
     */
    replayFrom(asked) {
      if (asked !== null && asked >= oldest()) return Math.min(asked, end);
      const start = oldest();
      if (start === 0) return 0;
      const beginning = Buffer.concat(this.from(start).map((piece) => piece.subarray(0, 4))).subarray(0, 4);
      const skipped = beginning.findIndex((byte) => (byte & 0xc0) !== 0x80);
      return start + Math.max(0, skipped);
    },
  };
}
