// holdfast secret rewrap: replaces the KEK around all data keys while everything runs. It uses the machine's operator token. Killed at any
// moment, it continues where it was.

import { getKekStatus, type KekStatus, rewrapKeys } from "@holdfast/contracts/endpoints/secrets";
import type { Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { Refusal } from "../../failure.ts";
import { printResult, table } from "../../output.ts";

type RewrapOptions = { dryRun?: boolean; check?: boolean; json?: boolean };

export function addRewrap(secret: Command): void {
  secret
    .command("rewrap")
    .description(
      "rewrap everything that is sealed under another KEK than the current one; see the runbook rotate-kek",
    )
    .option("--dry-run", "only count what is to be done")
    .option("--check", "only check whether all KEKs but the current one can be removed; exit code 1: not yet")
    .option("--json", "print JSON")
    .action(async (options: RewrapOptions) => {
      const call = clientOf(findServerToAdminister());
      const before = await call(getKekStatus, {});
      if (options.dryRun) return printResult(options, before, describe);
      if (options.check) {
        printResult(options, before, describe);
        if (!before.unneeded) throw notYet(before);
        return;
      }
      let done = 0;
      for (let waiting = before.waiting; waiting > 0; ) {
        // The api that answers may have changed since: it refuses if its current KEK is another.
        const batch = await call(rewrapKeys, { body: { to: before.current } });
        done += batch.rewrapped;
        waiting = batch.waiting;
        if (!options.json) process.stderr.write(`Rewrapped ${done}, ${waiting} left.\n`);
      }
      const after = await call(getKekStatus, {});
      printResult(
        options,
        { ...after, rewrapped: done },
        () => `${done} data keys rewrapped.\n\n${describe(after)}`,
      );
    });
}

function notYet({ obstacles }: KekStatus): Refusal {
  return new Refusal("kek_needed", {
    message: "Another KEK than the current one is still needed.",
    nextStep: "Give every api the new KEK as the current one, and run `holdfast secret rewrap`.",
    details: { obstacles },
  });
}

function describe({ current, sealed, waiting, unneeded, obstacles }: KekStatus): string {
  const rows = table(sealed, [
    { title: "kek", of: (row) => row.kek_id },
    { title: "platform keys", of: (row) => String(row.platform_keys) },
    { title: "secrets", of: (row) => String(row.secrets) },
    { title: "state", of: (row) => (row.kek_id === current ? "current" : "to be rewrapped") },
  ]);
  const verdict = unneeded
    ? `Only the KEK "${current}" is needed. Remove HOLDFAST_PREVIOUS_KEK_BASE64 and HOLDFAST_PREVIOUS_KEK_ID from every api. Keep the old KEK as long as backups of the database from before.`
    : [
        `${waiting} data keys are to be rewrapped under "${current}". Every KEK stays configured:`,
        ...obstacles.map((one) => `  ${one}`),
      ].join("\n");
  return `${rows}\n\n${verdict}`;
}
