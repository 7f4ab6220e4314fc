// holdfast admin link: a one-time sign-in link for the first administrator, or for one who lost
// the password. It uses the machine's operator token, so whoever can read that file can run this.

import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { localTime, printResult } from "../../output.ts";

export function adminCommand(): Command {
  const admin = new Command("admin").description("one-time links for administrators");
  admin
    .command("link")
    .description("create a one-time sign-in link, valid for 15 minutes; it replaces the previous one")
    .option("--email <address>", "account to sign in; default: the only administrator")
    .option("--json", "print JSON")
    .action(async (options: { email?: string; json?: boolean }) => {
      const link = await clientOf(findServerToAdminister())(createAdminLink, { body: { email: options.email } });
      printResult(options, link, () => {
        const who = link.email
          ? `Signs in ${link.email} and sets a new password.`
          : "Creates the first administrator.";
        return `${link.url}\n${who} Works once, until ${localTime(link.expires_at)}.`;
      });
    });
  return admin;
}
