// holdfast evidence verify: offline with a key that was pinned, else with the key that the server publishes.

import { readFileSync } from "node:fs";
import { listEvidenceKeys } from "@holdfast/contracts/endpoints/evidence";
import { EvidenceKey } from "@holdfast/contracts/public/evidence-bundle";
import { kidOf } from "@holdfast/control-plane/evidence-bundles/archive/keys";
import { type BundleProblem, verifyBundle } from "@holdfast/control-plane/evidence-bundles/archive/verify";
import { readFileIfPresent } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { z } from "zod";
import { clientOf, findServer, type ServerOptions } from "../../client/connect.ts";
import { exitCodes } from "../../failure.ts";
import { printResult } from "../../output.ts";

type VerifyOptions = Pick<ServerOptions, "local" | "json"> & { key?: string };

export function addVerify(evidence: Command): void {
  evidence
    .command("verify")
    .description("check that a bundle is complete, unchanged and signed by the installation")
    .argument("<file>", "the bundle")
    .option(
      "--key <kid or file>",
      "a key that you trust: its kid, or the output of `holdfast evidence key --json`",
    )
    .option("--local", "ask the server on this machine for its key")
    .option("--json", "print JSON")
    .action(async (path: string, options: VerifyOptions) => {
      const archive = readBundle(path);
      const { problems, manifest } = verifyBundle(archive, await trustedKids(options));
      const result = { file: path, valid: problems.length === 0, problems, manifest: manifest?.content ?? null };
      printResult(options, result, ({ valid, manifest: content }) =>
        valid && content
          ? [
              `Valid: ${path}`,
              `About ${content.subject.type} ${content.subject.name ?? content.subject.id}, ${content.files.length} files, created ` +
                `${content.created_at} by ${content.created_by}.`,
              `Signed with the key ${manifest?.key.kid}.`,
            ].join("\n")
          : [`Not valid: ${path}`, ...problems.map(inWords)].join("\n"),
      );
      if (!result.valid) process.exitCode = exitCodes.failed;
    });
}

export function addKey(evidence: Command): void {
  evidence
    .command("key")
    .description("print the key that verifies the server's bundles; keep it to verify them offline")
    .option("--local", "of the server on this machine")
    .option("--json", "print JSON")
    .action(async (options: ServerOptions) => {
      const published = await clientOf(findServer(options))(listEvidenceKeys, {});
      printResult(options, published, ({ keys }) => keys.map(({ kid }) => kid).join("\n"));
    });
}

export function readBundle(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

const KeyFile = z.union([
  z.object({ keys: z.array(EvidenceKey).min(1) }),
  EvidenceKey.transform((key) => ({ keys: [key] })),
]);

async function trustedKids(options: VerifyOptions): Promise<Set<string>> {
  const { key } = options;
  if (key === undefined) {
    const { keys } = await clientOf(findServer(options))(listEvidenceKeys, {});
    return new Set(keys.map(({ x }) => kidOf(x)));
  }
  if (/^[A-Za-z0-9_-]{43}$/.test(key)) return new Set([key]);
  const text = readFileIfPresent(key);
  if (text === undefined) throw new UsageError(`--key ${key} is neither a kid of 43 characters nor a file.`);
  const read = KeyFile.safeParse(parsed(text));
  if (!read.success)
    throw new UsageError(`${key} has no key: save the output of \`holdfast evidence key --json\`.`);
  return new Set(read.data.keys.map(({ x }) => kidOf(x)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const words: Record<BundleProblem["code"], (detail: string) => string> = {
  not_a_bundle: (detail) => `It is not an archive that can be read: ${detail}.`,
  manifest_missing: () => "It has no manifest.",
  manifest_malformed: (detail) => `Its manifest cannot be read: ${detail}.`,
  key_not_trusted: (detail) => `It is ${detail}. Compare the kid with \`holdfast evidence key\`.`,
  signature_invalid: (detail) => `The signature does not match: ${detail}.`,
  file_missing: (path) => `${path} is missing.`,
  file_added: (path) => `${path} was added.`,
  file_twice: (path) => `${path} is in it more than once.`,
  file_changed: (path) => `${path} was changed.`,
};

function inWords({ code, message }: BundleProblem): string {
  return `  ${words[code](message)}`;
}
