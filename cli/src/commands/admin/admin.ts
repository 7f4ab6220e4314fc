// holdfast admin link: a one-time sign-in link for the first administrator, or for one who lost
// the password. It goes by the token file of the machine, so whoever may read that may do this.

import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { localTime, printResult } from "../../output.ts";

export function adminCommand(): Command {
  const admin = new Command("admin").description("one-time links for administrators");
  admin
    .command("link")
    .description("make a one-time sign-in link; it replaces the one before and works for 15 minutes")
    .option("--email <address>", "whose account; left out, the only administrator's")
    .option("--json", "print JSON")
    .action(async (options: { email?: string; json?: boolean }) => {
      const link = await clientOf(findServerToAdminister())(createAdminLink, { body: { email: options.email } });
      printResult(options, link, () => {
        const who = link.email
          ? `Signs in ${link.email} and sets a new password.`
          : "Makes the first administrator.";
        return `${link.url}\n${who} Works once, until ${localTime(link.expires_at)}.`;
      });
    });
  return admin;
}
