// Builds a bundle: every part is read, redacted and written as a file, then all of it is signed.

import { hash } from "node:crypto";
import type { ManifestContent } from "@holdfast/contracts/public/evidence-bundle";
import type { TarFile } from "@holdfast/kit/tar";
import type { EvidenceSigner } from "./archive/keys.ts";
import { packBundle } from "./archive/pack.ts";
import type { PartContext } from "./part.ts";
import { parts } from "./parts.ts";
import type { Redact } from "./redaction.ts";
import { README } from "./subject.ts";

export type Built = { archive: Buffer; sha256: string; files: number };

export async function buildBundle(
  context: PartContext,
  about: Omit<ManifestContent, "files" | "subject">,
  { signer, redact }: { signer: EvidenceSigner; redact: Redact },
): Promise<Built> {
  const { subject, viewer } = context;
  const { type, id, name } = subject;
  const written: (TarFile & { title: string })[] = [];
  for (const { path, title, needs, read } of parts) {
    if (needs !== undefined && !viewer.holds(needs)) continue;
    const value = await read(context);
    if (value === null || value === undefined) continue;
    written.push({ path, title, content: Buffer.from(textOf(path, redact(plain(value)))) });
  }
  const files: TarFile[] = [
    { path: "README.txt", content: Buffer.from(redact(README(subject, written))) },
    ...written,
  ];
  const archive = packBundle(signer, { ...about, subject: redact({ type, id, name }) }, files);
  return { archive, sha256: hash("sha256", archive), files: files.length };
}

/** As JSON has it: times as texts, and no undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function textOf(path: string, value: unknown): string {
  if (!path.endsWith(".jsonl")) return `${JSON.stringify(value, null, 2)}\n`;
  return (value as unknown[]).map((one) => `${JSON.stringify(one)}\n`).join("");
}
