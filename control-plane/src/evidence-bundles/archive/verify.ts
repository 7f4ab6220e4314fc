// Whether a bundle is as it was created, and by whom. Needs nothing but the file and a key that the reader trusts.

import { hash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { type EvidenceKey, MANIFEST, Manifest } from "@holdfast/contracts/public/evidence-bundle";
import { keyringOf } from "@holdfast/kit/detached-jws";
import { isSignedBy } from "@holdfast/kit/signed-statement";
import { type TarFile, unpackTar } from "@holdfast/kit/tar";
import { kidOf } from "./keys.ts";
import { manifestText } from "./manifest-text.ts";

export type BundleProblem = {
  code:
    | "not_a_bundle"
    | "manifest_missing"
    | "manifest_malformed"
    | "key_not_trusted"
    | "signature_invalid"
    | "file_missing"
    | "file_added"
    | "file_twice"
    | "file_changed";
  message: string;
};

type Verified = {
  problems: BundleProblem[];
  /** As it is in the file, signed or not. */
  manifest: Manifest | undefined;
  files: TarFile[];
};

/** A bundle has some megabytes; this is for what only looks like one. */
const MOST_BYTES = 512 * 1024 * 1024;

/** `trusted`: kids. */
export function verifyBundle(archive: Buffer, trusted: ReadonlySet<string>): Verified {
  let files: TarFile[];
  try {
    files = unpackTar(unzip(archive));
  } catch (error) {
    return { problems: [problem("not_a_bundle", (error as Error).message)], manifest: undefined, files: [] };
  }
  const text = files.find(({ path }) => path === MANIFEST)?.content.toString("utf8");
  if (text === undefined) return { problems: [problem("manifest_missing", MANIFEST)], manifest: undefined, files };
  const manifest = readManifest(text);
  if (!manifest) {
    return { problems: [problem("manifest_malformed", "not of a version that is known here")], manifest, files };
  }
  const problems = [...judgeSignature(manifest, trusted), ...compare(manifest, files)];
  if (problems.length === 0 && text !== manifestText(JSON.parse(text))) {
    problems.push(problem("signature_invalid", "the manifest is written in another form than when it was signed"));
  }
  return { problems, manifest, files };
}

/** The archive must be the whole file: another reader might find more behind it. */
function unzip(archive: Buffer): Buffer {
  const { buffer, engine } = gunzipSync(archive, { info: true, maxOutputLength: MOST_BYTES }) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  if (engine.bytesWritten !== archive.length) throw new Error("the file continues after the archive");
  return buffer;
}

function readManifest(text: string): Manifest | undefined {
  try {
    return Manifest.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function judgeSignature(manifest: Manifest, trusted: ReadonlySet<string>): BundleProblem[] {
  const { key } = manifest;
  const isItself = key.kid === kidOf(key.x);
  if (!isItself || !trusted.has(key.kid)) {
    return [problem("key_not_trusted", `signed with the key ${key.kid}, which is not one that you trust`)];
  }
  const keys: EvidenceKey[] = [key];
  if (isSignedBy(keyringOf(keys), manifest)) return [];
  return [problem("signature_invalid", "the manifest was changed after it was signed")];
}

function compare({ content }: Manifest, files: readonly TarFile[]): BundleProblem[] {
  const found = new Map<string, TarFile[]>();
  for (const file of files) found.set(file.path, [...(found.get(file.path) ?? []), file]);
  const named = new Set([MANIFEST, ...content.files.map(({ path }) => path)]);
  return [
    ...[...found].flatMap(([path, all]) => (all.length > 1 ? [problem("file_twice", path)] : [])),
    ...[...found.keys()].flatMap((path) => (named.has(path) ? [] : [problem("file_added", path)])),
    ...content.files.flatMap(({ path, bytes, sha256 }) => {
      const [file] = found.get(path) ?? [];
      if (!file) return [problem("file_missing", path)];
      const isSame = file.content.length === bytes && hash("sha256", file.content) === sha256;
      return isSame ? [] : [problem("file_changed", path)];
    }),
  ];
}

function problem(code: BundleProblem["code"], message: string): BundleProblem {
  return { code, message };
}
