// holdfast migrate: for installations whose api may not change the schema.

import { configuredLogins, setUpDatabase } from "@holdfast/control-plane/database/logins";
import { databaseSettings } from "@holdfast/control-plane/database/settings";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { printResult, printWarnings } from "../output.ts";

export function migrateCommand(): Command {
  return new Command("migrate")
    .description(
      "apply migrations to HOLDFAST_DATABASE_URL and set up the logins of api and worker, as the database's owner",
    )
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const settings = readSettings(databaseSettings, process.env);
      printWarnings(warningsAboutUnsupported(process.env));
      const { databaseUrl: ownerUrl } = settings;
      if (!ownerUrl)
        throw new UsageError(
          "HOLDFAST_DATABASE_URL is not set. Set it to the database's URL, with the owner's login.",
        );
      const { applied } = await setUpDatabase({ ownerUrl, logins: configuredLogins(settings) });
      printResult(options, { applied }, () =>
        applied.length > 0 ? `Applied ${applied.join(", ")}.` : "The schema is up to date.",
      );
    });
}
