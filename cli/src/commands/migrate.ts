// holdfast migrate: for installations whose api has no right to change the schema.

import { migrate } from "@holdfast/control-plane/database/migrate";
import { databaseSettings } from "@holdfast/control-plane/database/settings";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { printResult } from "../output.ts";

export function migrateCommand(): Command {
  return new Command("migrate")
    .description("bring the schema of HOLDFAST_DATABASE_URL up to date, as its owner")
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const { databaseUrl } = readSettings(databaseSettings, process.env);
      if (!databaseUrl) throw new UsageError("Set HOLDFAST_DATABASE_URL to the database, with its owner's login.");
      const result = await migrate({ url: databaseUrl });
      printResult(options, result, ({ applied }) =>
        applied.length > 0 ? `Applied ${applied.join(", ")}.` : "The schema is current.",
      );
    });
}
