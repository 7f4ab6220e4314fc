// npm run classify -- <file> [--json]: what today's classifier says of stored evidence. Exit code 2 when the file is not
// evidence.

import { readFileSync } from "node:fs";
import type { EvidenceFile } from "@holdfast/contracts/public/evidence-file";
import { isReason, reasons, titleOf } from "@holdfast/contracts/reasons/catalogue";
import { owners } from "@holdfast/contracts/reasons/owners";
import { nextActions } from "@holdfast/contracts/reasons/vocabulary";
import { z } from "zod";
import { type Cause, classify } from "../control-plane/src/drift/classify/classify.ts";
import { KnownEvidence, observationsIn } from "../control-plane/src/drift/evidence/export.ts";
import { defaultPolicy } from "../control-plane/src/drift/policy.ts";

const [path, ...flags] = process.argv.slice(2);
if (!path || flags.some((flag) => flag !== "--json")) stop("usage: npm run classify -- <file> [--json]");
const file = read(path);
const verdict = classify(observationsIn(file), defaultPolicy, Date.parse(file.at));
process.stdout.write(flags.includes("--json") ? `${JSON.stringify(verdict, null, 2)}\n` : `${describe()}\n`);

function read(from: string): EvidenceFile {
  try {
    const parsed = KnownEvidence.safeParse(JSON.parse(readFileSync(from, "utf8")));
    return parsed.success ? parsed.data : stop(`${from} is not evidence:\n${z.prettifyError(parsed.error)}`);
  } catch (error) {
    return stop(`cannot read ${from}: ${(error as Error).message}`);
  }
}

function describe(): string {
  if (verdict.causes.length === 0) return "Healthy: no cause found.";
  return verdict.causes.map(paragraphOf).join("\n\n");
}

function paragraphOf(cause: Cause): string {
  const { reason, signal, severity, confidence, owner, nextAction, symptoms, changedBy, evidence } = cause;
  const message = isReason(reason)
    ? reasons[reason].message
    : "An agent reports a reason that this server does not know.";
  return [
    `${titleOf(reason)} (${reason}${signal === null || signal === reason ? "" : `, ${signal}`})`,
    `  ${message}`,
    `  Severity ${severity}, confidence ${confidence}, since ${new Date(cause.since).toISOString()}.`,
    `  Owner: ${owners[owner].title}. Next: ${nextActions[nextAction]}`,
    ...(symptoms.length > 0 ? [`  Explains: ${symptoms.join(", ")}.`] : []),
    `  Evidence: ${evidence.map(({ id, kind, value }) => `${kind}=${value} (${id})`).join(", ")}.`,
    `  Would change with ${changedBy}.`,
  ].join("\n");
}

function stop(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
