// Files into one signed archive. Pure, but for the signature.

import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import {
  BUNDLE_KIND,
  BUNDLE_VERSION,
  MANIFEST,
  type ManifestContent,
} from "@holdfast/contracts/public/evidence-bundle";
import { packTar, type TarFile } from "@holdfast/kit/tar";
import type { EvidenceSigner } from "./keys.ts";
import { manifestText } from "./manifest-text.ts";

export function packBundle(
  signer: EvidenceSigner,
  about: Omit<ManifestContent, "files">,
  files: readonly TarFile[],
): Buffer {
  const named = files.map(({ path, content }) => ({
    path,
    bytes: content.length,
    sha256: hash("sha256", content),
  }));
  const content = { ...about, files: named };
  const manifest = signer.sign({ kind: BUNDLE_KIND, version: BUNDLE_VERSION, content });
  const first = { path: MANIFEST, content: Buffer.from(manifestText(manifest)) };
  return gzipSync(packTar([first, ...files], new Date(about.created_at)));
}
