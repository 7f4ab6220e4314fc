import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { gatherWrites } from "./gather-writes.ts";

function make() {
  const writes: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      writes.push(chunk);
      done();
    },
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk }) => chunk).join(""));
      done();
    },
  });
  return { writes, stream };
}

describe("gathered writes", () => {
  it("become one at the end of the turn, also those of promises that were settled in it", async () => {
    const { writes, stream } = make();
    // From here on in a promise's turn, as what a step does is.
    await Promise.resolve();
    const later = Promise.resolve().then(() => {
      gatherWrites(stream);
      stream.write("c");
    });
    for (const text of ["a", "b"]) {
      gatherWrites(stream);
      stream.write(text);
    }
    expect(writes).toEqual([]);
    await later;
    await new Promise(setImmediate);
    expect(writes).toEqual(["abc"]);
    expect(stream.writableCorked).toBe(0);
  });

  it("leave at once when they are uncorked", async () => {
    const { writes, stream } = make();
    gatherWrites(stream);
    stream.write("a");
    stream.uncork();
    expect(writes).toEqual(["a"]);
    stream.write("b");
    await new Promise(setImmediate);
    expect(writes).toEqual(["a", "b"]);
  });
});
