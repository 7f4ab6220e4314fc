import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signStatement } from "@holdfast/kit/signed-statement";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import type { KeySet } from "../identity/accept-trust.ts";
import { createLog } from "../log.ts";
import { decideKeys, openPinnedKeys } from "./key-set.ts";

type Key = { kid: string; privateKey: KeyObject; jwk: KeySet["keys"][number] };
const key = (kid: string): Key => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { kid, privateKey, jwk: { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x } };
};
const [a, b, c] = [key("a"), key("b"), key("c")];
const signed = (version: number, keys: Key[], by: Key[]) =>
  signStatement(by, { kind: "task_key_set", version, content: { keys: keys.map(({ jwk }) => jwk) } });
const first: KeySet = { version: 1, keys: [a.jwk] };

describe("the signing keys of an agent", () => {
  it("EXEC-02 advance along a chain, each set signed with the one before it", () => {
    const chain = [signed(2, [a, b], [a]), signed(3, [b, c], [b])];
    expect(decideKeys(first, chain)).toEqual({ pin: { version: 3, keys: [b.jwk, c.jwk] } });
    expect(decideKeys(first, [])).toEqual({});
    expect(decideKeys(first, [signed(1, [a], [a])])).toEqual({});
  });

  it.for<[string, unknown[], RegExp]>([
    ["an older set", [signed(1, [c], [a])], /older than version 2/],
    ["a set that nobody signed", [{ ...signed(3, [c], [c]), signatures: [] }], /without a signature/],
    ["a set that is signed with its own key only", [signed(3, [c], [c])], /without a signature/],
    ["a chain with a gap in its signatures", [signed(3, [b], [a]), signed(4, [c], [a])], /without a signature/],
    ["other keys under the same version", [signed(2, [c], [a])], /other content/],
    ["something else", [17], /format/],
    ["nothing", [null], /format/],
  ])("EXEC-02 refuse %s", ([, offered, why]) => {
    const { pin, refused } = decideKeys({ ...first, version: 2 }, offered);
    expect([pin, refused]).toEqual([undefined, expect.stringMatching(why)]);
  });

  it("EXEC-02 are pinned at the first connection by credentials that have none, and that is logged", () => {
    const file = join(scratchDirectory(), "key-set.json");
    const lines: string[] = [];
    const log = createLog({ write: (line) => lines.push(line) });
    const keys = openPinnedKeys({ file, paired: undefined, log });
    expect([keys.version(), keys.keyring().size]).toEqual([undefined, 0]);
    keys.offered([signed(4, [a], [c]), signed(5, [b], [a])]);
    expect([keys.version(), [...keys.keyring().keys()]]).toEqual([5, ["b"]]);
    expect(lines.join("")).toContain("pinned the signing keys of the first connection");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const again = openPinnedKeys({ file, paired: undefined, log });
    again.offered([signed(9, [c], [c])]);
    expect(again.version()).toBe(5);
    expect(lines.at(-1)).toContain("refused");
  });

  it("EXEC-02 are those that are newer: of the pairing, or accepted since", () => {
    const file = join(scratchDirectory(), "key-set.json");
    const log = createLog({ write: () => undefined });
    const keys = openPinnedKeys({ file, paired: first, log });
    keys.offered([signed(2, [b], [a])]);
    expect(openPinnedKeys({ file, paired: first, log }).version()).toBe(2);
    const repaired = { version: 3, keys: [c.jwk] };
    expect(openPinnedKeys({ file, paired: repaired, log }).version()).toBe(3);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ version: 2 });
    writeFileSync(file, "{");
    expect(() => openPinnedKeys({ file, paired: first, log })).toThrow(file);
  });

  it("EXEC-02 count although they could not be stored", () => {
    const lines: string[] = [];
    const file = join(scratchDirectory(), "missing/key-set.json");
    const keys = openPinnedKeys({ file, paired: first, log: createLog({ write: (line) => lines.push(line) }) });
    keys.offered([signed(2, [b], [a])]);
    expect(keys.version()).toBe(2);
    expect(lines.join("")).toContain("could not be stored");
  });
});
