// holdfast evidence create, list and download.

import { closeSync, openSync, writeFileSync } from "node:fs";
import type { Client } from "@holdfast/contracts/client";
import {
  createEvidence,
  downloadEvidence,
  type EvidenceBundle,
  listEvidence,
} from "@holdfast/contracts/endpoints/evidence";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { isErrno } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { isNodeId } from "../../client/find-node.ts";
import { localTime, printResult, table } from "../../output.ts";
import { missingLines } from "../logs/logs.ts";

type FileOptions = ServerOptions & { output?: string };

export function addCreate(evidence: Command): void {
  withServerOptions(evidence.command("create"))
    .description("create a bundle and save it")
    .argument("<subject>", "the name or id of a node; the id of an allocation or an incident; or a correlation id")
    .option("-o, --output <file>", "where to save it; by default in this directory, under the name of its subject")
    .action(async (subject: string, options: FileOptions) => {
      const client = await connect(options);
      const created = await client(createEvidence, { body: { subject_id: await subjectId(client, subject) } });
      const file = await save(client, created, options.output);
      printResult(options, { ...created, file }, ({ files, bytes, replicas }) =>
        [
          `Saved ${file}: ${files} files, ${bytesInWords(bytes)}, about ${created.subject.type} ${created.subject.name ?? created.subject.id}.`,
          `Verify it: holdfast evidence verify ${file}`,
          ...missingLines(replicas),
        ].join("\n"),
      );
    });

  withServerOptions(evidence.command("list"))
    .description("list the bundles that the server keeps, newest first")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listEvidence, { query: { limit: 200 } }), ({ items }) =>
        items.length === 0 ? "No bundle is kept." : table(items, columns),
      );
    });

  withServerOptions(evidence.command("download"))
    .description("save a bundle that the server keeps")
    .argument("<bundle>", "its id")
    .option("-o, --output <file>", "where to save it; by default in this directory, under the name of its subject")
    .action(async (id: string, options: FileOptions) => {
      const client = await connect(options);
      const saved = await save(client, { id }, options.output);
      printResult(options, { id, file: saved }, ({ file }) => `Saved ${file}.`);
    });
}

const columns = [
  { title: "bundle", of: ({ id }: EvidenceBundle) => id },
  { title: "about", of: ({ subject }: EvidenceBundle) => `${subject.type} ${subject.name ?? subject.id}` },
  { title: "size", of: ({ bytes }: EvidenceBundle) => bytesInWords(bytes) },
  { title: "created", of: ({ created_at }: EvidenceBundle) => localTime(created_at) },
  { title: "by", of: ({ created_by }: EvidenceBundle) => created_by },
  { title: "kept until", of: ({ expires_at }: EvidenceBundle) => localTime(expires_at) },
];

/** What is not an id may be the name of a node. */
async function subjectId(client: Client, subject: string): Promise<string> {
  if (isNodeId(subject) || subject.length > 64) return subject;
  const { items } = await client(listNodes, {
    query: { name: subject.toLowerCase(), state: "present", limit: 1 },
  });
  return items[0]?.id ?? subject;
}

/** Only its user may read it; an existing file is not replaced. */
async function save(client: Client, { id }: { id: string }, output: string | undefined): Promise<string> {
  const { content, file_name } = await client(downloadEvidence, { params: { evidence_id: id } });
  const path = output ?? file_name;
  try {
    const file = openSync(path, "wx", 0o600);
    writeFileSync(file, Buffer.from(content, "base64"));
    closeSync(file);
  } catch (error) {
    if (isErrno(error, "EEXIST")) throw new UsageError(`${path} exists already. Choose another file with -o.`);
    throw new UsageError(`${path} cannot be written: ${(error as Error).message}`);
  }
  return path;
}
