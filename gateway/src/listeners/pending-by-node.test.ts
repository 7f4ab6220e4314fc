import { describe, expect, it } from "vitest";
import { pendingByNode } from "./pending-by-node.ts";

describe("streams of one node that are being admitted", () => {
  it("TERM-04 are limited for each node, and make room when they are decided", async () => {
    const pending = pendingByNode(2);
    const decided = Promise.withResolvers<string>();
    const first = [pending.run("a", () => decided.promise), pending.run("a", () => decided.promise)];
    await expect(pending.run("a", async () => "third")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    expect(await pending.run("b", async () => "another node")).toBe("another node");
    decided.resolve("admitted");
    expect(await Promise.all(first)).toEqual(["admitted", "admitted"]);
    expect(await pending.run("a", async () => "later")).toBe("later");
    await expect(pending.run("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await pending.run("a", async () => "after a failure")).toBe("after a failure");
  });
});
