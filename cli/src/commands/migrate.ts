// holdfast migrate: for installations whose api has no right to change the schema.

import { givenLogins, setUpDatabase } from "@holdfast/control-plane/database/logins";
import { databaseSettings } from "@holdfast/control-plane/database/settings";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { printResult, printWarnings } from "../output.ts";

export function migrateCommand(): Command {
  return new Command("migrate")
    .description(
      "bring the schema of HOLDFAST_DATABASE_URL up to date and set up the logins of api and worker, as its owner",
    )
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const settings = readSettings(databaseSettings, process.env);
      printWarnings(warningsAboutUnsupported(process.env));
      const { databaseUrl: ownerUrl } = settings;
      if (!ownerUrl) throw new UsageError("Set HOLDFAST_DATABASE_URL to the database, with its owner's login.");
      const { applied } = await setUpDatabase({ ownerUrl, logins: givenLogins(settings) });
      printResult(options, { applied }, () =>
        applied.length > 0 ? `Applied ${applied.join(", ")}.` : "The schema is current.",
      );
    });
}
