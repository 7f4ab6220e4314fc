import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FaultyDisk, faultyDisk, type Images } from "../../test/support/faulty-disk.ts";
import { openRecordFiles, readRecordFiles } from "./record-files.ts";

const CAPACITY = 4096;

function read(images: Images): string[] {
  const found: string[] = [];
  readRecordFiles(faultyDisk(images), (payload) => found.push(payload));
  return found;
}

function imagesOf(disk: FaultyDisk): Images {
  return disk.imagesAfter(() => ({ kind: "kept" }));
}

function open(disk: FaultyDisk) {
  return openRecordFiles(disk, () => {});
}

/** Where the payload stands, in which file. */
function placeOf(images: Images, payload: string): { image: Buffer; at: number } {
  const image = images.find((one) => one.includes(payload)) ?? images[0];
  return { image, at: image.indexOf(payload) };
}

describe("record files", () => {
  it("TASK-05 give back what was appended, in order, also across rewrites", () => {
    const payload = fc.string({ unit: "binary", minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(fc.array(fc.tuple(payload, fc.boolean()), { maxLength: 40 }), (steps) => {
        const disk = faultyDisk(CAPACITY);
        const files = open(disk);
        let expected: string[] = [];
        for (const [raw, rewrites] of steps) {
          const text = raw.toWellFormed();
          if (rewrites) {
            expected = expected.slice(-2);
            files.rewrite(expected);
          }
          if (files.append(text)) expected.push(text);
        }
        expect(read(imagesOf(disk))).toEqual(expected);
      }),
    );
  });

  it("TASK-05 end at a damaged byte, wherever it is", () => {
    const disk = faultyDisk(CAPACITY);
    const files = open(disk);
    for (const payload of ["first", "second", "third"]) files.append(payload);
    const { image, at } = placeOf(imagesOf(disk), "second");
    for (let byte = at - 8; byte < at + "second".length; byte += 1) {
      const images = imagesOf(disk);
      const damaged = images.find((one) => one.equals(image));
      damaged?.writeUInt8(damaged.readUInt8(byte) ^ 0x10, byte);
      expect(read(images)).toEqual(["first"]);
    }
  });

  it("TASK-05 what lay behind a torn record does not come back behind the one that replaces it", () => {
    const disk = faultyDisk(CAPACITY);
    const files = open(disk);
    for (const payload of ["first", "torn!", "third"]) files.append(payload);
    const images = imagesOf(disk);
    const { image, at } = placeOf(images, "torn!");
    image.fill(0, at, at + 2);
    const again = faultyDisk(images);
    const reopened = open(again);
    expect(reopened.append("torn!"), "nothing is appended to a file that was opened").toBe(false);
    reopened.rewrite(["first"]);
    expect(reopened.append("torn!")).toBe(true);
    expect(read(imagesOf(again))).toEqual(["first", "torn!"]);
  });

  it("TASK-05 what an older epoch left in the file does not come back", () => {
    const disk = faultyDisk(CAPACITY);
    const files = open(disk);
    for (const payload of ["aaaaa", "bbbbb", "ccccc"]) files.append(payload);
    files.rewrite(["ddddd"]);
    files.rewrite(["aaaaa"]);
    expect(
      imagesOf(disk).filter((image) => image.includes("bbbbb")),
      "its bytes are still there",
    ).toHaveLength(1);
    expect(read(imagesOf(disk))).toEqual(["aaaaa"]);
  });

  it("TASK-05 a file whose header was lost is not continued by chance", () => {
    const disk = faultyDisk(CAPACITY);
    const files = open(disk);
    files.append("aaaaa");
    files.rewrite(["aaaaa"]);
    files.append("bbbbb");
    const images = imagesOf(disk);
    placeOf(images, "bbbbb").image.fill(0, 0, 16);
    const again = faultyDisk(images);
    const found: string[] = [];
    const reopened = openRecordFiles(again, (payload) => found.push(payload));
    expect(found).toEqual(["aaaaa"]);
    reopened.rewrite(found);
    expect(read(imagesOf(again))).toEqual(["aaaaa"]);
  });

  it("TASK-05 a rewrite that does not fit changes nothing", () => {
    const disk = faultyDisk(CAPACITY);
    const files = open(disk);
    files.append("kept");
    expect(files.append("x".repeat(CAPACITY))).toBe(false);
    expect(() => files.rewrite(["x".repeat(CAPACITY)])).toThrow("do not fit");
    files.append("too");
    expect(read(imagesOf(disk))).toEqual(["kept", "too"]);
  });
});
