// holdfast evidence replay: classifies the evidence in a bundle again. Needs no server.

import { type Replayed, replayBundle } from "@holdfast/control-plane/evidence-bundles/archive/replay";
import { verifyBundle } from "@holdfast/control-plane/evidence-bundles/archive/verify";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { exitCodes } from "../../failure.ts";
import { printResult, table } from "../../output.ts";
import { readBundle } from "./verify.ts";

export function addReplay(evidence: Command): void {
  evidence
    .command("replay")
    .description("classify the evidence in a bundle again, and compare the verdicts with those that were recorded")
    .argument("<file>", "the bundle; verify it first")
    .option("--json", "print JSON")
    .action((path: string, options: { json?: boolean }) => {
      const verdicts = replayed(path);
      printResult(options, { file: path, same: verdicts.every(({ same }) => same), verdicts }, () =>
        verdicts.length === 0
          ? "The bundle has no classification: it is about no node."
          : table(verdicts, columns),
      );
      if (verdicts.some(({ same }) => !same)) process.exitCode = exitCodes.failed;
    });
}

function replayed(path: string): Replayed[] {
  try {
    return replayBundle(verifyBundle(readBundle(path), new Set()).files);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be classified again: ${(error as Error).message}`);
  }
}

const reasonsOf = (reasons: readonly string[]) => reasons.join(", ") || "healthy";

const columns = [
  { title: "time", of: ({ at }: Replayed) => at },
  { title: "node", of: ({ node_id }: Replayed) => node_id },
  { title: "incident", of: ({ incident_id }: Replayed) => incident_id ?? "now" },
  { title: "recorded", of: ({ recorded }: Replayed) => reasonsOf(recorded) },
  { title: "classified again", of: ({ replayed: again }: Replayed) => reasonsOf(again) },
  { title: "same", of: ({ same }: Replayed) => (same ? "yes" : "no") },
];
