import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { ManifestContent } from "@holdfast/contracts/public/evidence-bundle";
import { packTar, type TarFile, unpackTar } from "@holdfast/kit/tar";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { signerOf } from "./keys.ts";
import { packBundle } from "./pack.ts";
import { replayBundle } from "./replay.ts";
import { verifyBundle } from "./verify.ts";

const signer = signerOf(generateKeyPairSync("ed25519").privateKey);
const other = signerOf(generateKeyPairSync("ed25519").privateKey);
const trusted = new Set([signer.key.kid]);
const at = new Date("2024-01-02T03:04:05Z");

const about: Omit<ManifestContent, "files"> = {
  ...{ bundle_id: "b-1", installation_id: "i-1", org_id: "o-1", created_at: at.toISOString(), created_by: "Ada" },
  ...{ subject: { type: "node", id: "n-1", name: "rock-1" }, correlation_id: "c-1", holdfast_version: "0.1.0" },
};
const file = (path: string, text: string): TarFile => ({ path, content: Buffer.from(text) });
const files = [file("README.txt", "read me"), file("tasks.json", "[1]\n"), file("logs/api.jsonl", "")];
const bundle = packBundle(signer, about, files);

/** The archive with its files changed, as somebody with an editor would. */
function tampered(change: (all: TarFile[]) => TarFile[]): Buffer {
  return gzipSync(packTar(change(unpackTar(gunzipSync(bundle))), at));
}
const textOf = (all: TarFile[]) => JSON.stringify(all.map(({ path, content }) => [path, String(content)]));
const codes = (archive: Buffer, kids = trusted) => verifyBundle(archive, kids).problems.map(({ code }) => code);
const inManifest = (change: (manifest: Record<string, unknown>) => unknown) => (all: TarFile[]) =>
  all.map((one) =>
    one.path === "manifest.json" ? file(one.path, JSON.stringify(change(JSON.parse(String(one.content))))) : one,
  );

describe("an evidence bundle", () => {
  it("DASH-03 is valid as it was created, for whoever trusts its key", () => {
    const { problems, manifest } = verifyBundle(bundle, trusted);
    expect(problems).toEqual([]);
    expect(manifest?.content.files.map(({ path }) => path)).toEqual([
      "README.txt",
      "tasks.json",
      "logs/api.jsonl",
    ]);
  });

  it("DASH-03 is read by the usual tools", () => {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-bundle-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, "bundle.tar.gz"), bundle);
    execFileSync("tar", ["-xzf", "bundle.tar.gz"], { cwd: directory });
    expect(readFileSync(join(directory, "tasks.json"), "utf8")).toBe("[1]\n");
    const manifest = JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8")) as typeof signer & {
      content: ManifestContent;
    };
    const sums = manifest.content.files.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join("");
    execFileSync("sha256sum", ["--check", "--strict"], {
      cwd: directory,
      input: sums,
      stdio: ["pipe", "ignore", "pipe"],
    });
  });

  it("DASH-03 shows every kind of change", () => {
    const without = (path: string) => (all: TarFile[]) => all.filter((one) => one.path !== path);
    const cases: [string, Buffer, string[]][] = [
      [
        "a file changed",
        tampered((all) => all.map((one) => (one.path === "tasks.json" ? file(one.path, "[2]\n") : one))),
        ["file_changed"],
      ],
      ["a file removed", tampered(without("tasks.json")), ["file_missing"]],
      ["a file added", tampered((all) => [...all, file("more.json", "{}")]), ["file_added"]],
      ["a file twice", tampered((all) => [...all, file("tasks.json", "[3]")]), ["file_twice"]],
      [
        "a file renamed",
        tampered((all) => all.map((one) => (one.path === "tasks.json" ? { ...one, path: "t.json" } : one))),
        ["file_added", "file_missing"],
      ],
      ["no manifest", tampered(without("manifest.json")), ["manifest_missing"]],
      ["a manifest that is none", tampered(inManifest(() => ({}))), ["manifest_malformed"]],
      [
        "another creator",
        tampered(inManifest((one) => ({ ...one, content: { ...(one["content"] as object), created_by: "Eve" } }))),
        ["signature_invalid"],
      ],
      [
        "another purpose",
        tampered(inManifest((one) => ({ ...one, signatures: ["e30..e30"] }))),
        ["signature_invalid"],
      ],
      ["signed by somebody else", packBundle(other, about, files), ["key_not_trusted"]],
      [
        "the kid of one key with another",
        tampered(inManifest((one) => ({ ...one, key: { ...other.key, kid: signer.key.kid } }))),
        ["key_not_trusted"],
      ],
      ["cut off", bundle.subarray(0, bundle.length - 10), ["not_a_bundle"]],
      ["something behind it", Buffer.concat([bundle, Buffer.from("more")]), ["not_a_bundle"]],
      [
        "another archive behind it",
        Buffer.concat([bundle, gzipSync(packTar([file("x", "y")], at))]),
        ["not_a_bundle"],
      ],
      ["not an archive", Buffer.from("hello"), ["not_a_bundle"]],
    ];
    for (const [what, archive, expected] of cases) expect(codes(archive), what).toEqual(expected);
  });

  it("DASH-03 no single byte of the archive changes unnoticed", () => {
    const plain = gunzipSync(bundle);
    const original = textOf(unpackTar(plain));
    const isNoticed = (place: number, by: number) => {
      const changed = Buffer.from(plain);
      changed[place] = ((changed[place] ?? 0) + by) % 256;
      const { problems, files: read } = verifyBundle(gzipSync(changed, { level: 0 }), trusted);
      // Padding and fields of a header that nobody reads may differ; no content may.
      return problems.length > 0 || textOf(read) === original;
    };
    // Neighbours in the alphabets of white space (line feed and tab) and of base64: other forms of the same manifest.
    for (const by of [1, 255]) {
      const unnoticed = [...plain.keys()].filter((place) => !isNoticed(place, by));
      expect(unnoticed).toEqual([]);
    }
    fc.assert(
      fc.property(fc.nat(plain.length - 1), fc.integer({ min: 2, max: 254 }), (place, by) => isNoticed(place, by)),
      { numRuns: 500 },
    );
  });

  it("DASH-03 refuses an archive with anything but regular files", () => {
    const archive = packTar([file("a", "b")], at);
    archive.write("2", 156);
    expect(() => unpackTar(archive)).toThrow();
    expect(unpackTar(packTar(files, at)).map(({ path }) => path)).toEqual(files.map(({ path }) => path));
    expect(() => packTar([file("x".repeat(101), "")], at)).toThrow(RangeError);
  });

  it("DASH-03 says when its classification gives another verdict now", () => {
    const evidence = { format: "holdfast-evidence/1", at: at.toISOString(), observations: [] };
    const cause = {
      ...{ reason: "cert_expired", signal: null, confidence: "high", severity: "P1", userState: "temporary" },
      ...{ owner: "pki", nextAction: "wait", symptoms: [] },
    };
    const verdict = { node_id: "n-1", incident_id: null, at: at.toISOString(), evidence };
    const content = (causes: unknown[]) =>
      JSON.stringify({ policy: { heartbeatStaleAfterMs: 120_000 }, verdicts: [{ ...verdict, causes }] });
    expect(replayBundle([file("classification.json", content([cause]))])).toMatchObject([{ same: false }]);
    const checking = { ...cause, reason: "recovery_unverified", missing: ["task_completed"] };
    expect(replayBundle([file("classification.json", content([checking]))])).toMatchObject([{ same: true }]);
    expect(() => replayBundle([])).toThrow("classification.json");
  });
});
