// holdfast logout: revokes the token that `login` made, and forgets it. What was made with that token ends too.

import { codeOf } from "@holdfast/contracts/client";
import { revokeToken } from "@holdfast/contracts/endpoints/tokens";
import type { IssuedToken } from "@holdfast/contracts/public/issued-tokens";
import { Command } from "commander";
import { clientOf, savedServer } from "../client/connect.ts";
import { type Credentials, forgetCredentials, loadCredentials } from "../client/credentials.ts";
import { UnreachableError } from "../failure.ts";
import { printResult } from "../output.ts";
import { endedLines } from "./issued.ts";

export function logoutCommand(): Command {
  return new Command("logout")
    .description("revoke and remove the credentials of `holdfast login`")
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const saved = loadCredentials(process.env);
      if (!saved) return printResult(options, { signed_out: false }, () => "You are not signed in to any server.");
      let ended: IssuedToken[] = [];
      try {
        const revoked = await clientOf(savedServer(saved))(revokeToken, {
          params: { token_id: saved.token_id },
        });
        ended = revoked.ended.filter(({ id }) => id !== saved.token_id);
      } catch (error) {
        forgetCredentials(process.env);
        // A token that the server refuses is revoked already.
        if (codeOf(error) !== "unauthenticated") throw stillValid(error, saved);
      }
      forgetCredentials(process.env);
      printResult(options, { signed_out: true, ended }, () =>
        [`Signed out of ${saved.api_url}.`, ...endedLines(ended)].join("\n"),
      );
    });
}

/** The file is gone either way: whoever leaves a machine wants that, also without a network. */
function stillValid(error: unknown, saved: Credentials): Error {
  const note = `The credentials were removed from this machine, but the token is still valid. Revoke it: holdfast token revoke ${saved.token_id}`;
  const message = `${error instanceof Error ? error.message : error}\n${note}`;
  return error instanceof UnreachableError ? new UnreachableError(message) : new Error(message);
}
