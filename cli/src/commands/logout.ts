// holdfast logout: revokes the token that `login` made, and forgets it.

import { CallError } from "@holdfast/contracts/client";
import { revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { Command } from "commander";
import { clientOf } from "../client/connect.ts";
import { forgetCredentials, loadCredentials } from "../client/credentials.ts";
import { printResult } from "../output.ts";

export function logoutCommand(): Command {
  return new Command("logout")
    .description("revoke and forget the sign-in of `holdfast login`")
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const saved = loadCredentials(process.env);
      if (!saved) return printResult(options, { signed_out: false }, () => "You are not signed in to any server.");
      try {
        await clientOf({ url: saved.api_url, token: saved.token })(revokeToken, {
          params: { token_id: saved.token_id },
        });
      } catch (error) {
        // A token that the server refuses is revoked already.
        if (!(error instanceof CallError && error.envelope.code === "unauthenticated")) throw error;
      }
      forgetCredentials(process.env);
      printResult(options, { signed_out: true }, () => `Signed out of ${saved.api_url}.`);
    });
}
