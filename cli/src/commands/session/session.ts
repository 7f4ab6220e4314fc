// holdfast session list, end. For the person behind the sign-in of `holdfast login` or behind HOLDFAST_TOKEN.

import {
  endSession,
  listMyTokens,
  listSessions,
  type Session,
  signOutEverywhere,
} from "@holdfast/contracts/endpoints/sessions";
import { countIssued } from "@holdfast/contracts/public/issued-tokens";
import { describeUserAgent } from "@holdfast/contracts/words/user-agent";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { clientOf, findServer, type ServerOptions } from "../../client/connect.ts";
import { ago, harmless, localTime, printResult, table } from "../../output.ts";
import { agreed } from "../../prompt.ts";
import { endedLines, issuedTable, rejoinLines } from "../issued.ts";

type EndOptions = ServerOptions & { all?: boolean; revokeTokens?: boolean };

export function sessionCommand(): Command {
  const session = new Command("session").description("where you are signed in");
  session
    .command("list")
    .description("list your browser sessions, most recently used first")
    .option("--json", "print JSON")
    .action(async (options: ServerOptions) => {
      const { items } = await me()(listSessions, {});
      printResult(options, { items }, () => (items.length === 0 ? "No browser sessions." : sessionTable(items)));
    });
  session
    .command("end")
    .description("end one session or all; their terminals close")
    .argument("[id]", "from `holdfast session list`")
    .option("--all", "sign out everywhere: end all sessions and close all your terminals")
    .option(
      "--revoke-tokens",
      "with --all: also revoke every token you created, including the one of this command line",
    )
    .option("--no-revoke-tokens", "with --all: keep the tokens without asking")
    .option("--json", "print JSON")
    .action(async (id: string | undefined, options: EndOptions) => {
      if ((id === undefined) === (options.all === undefined)) {
        throw new UsageError("Name the session to end, or use --all.");
      }
      if (id === undefined) return endAll(options);
      await me()(endSession, { params: { session_id: id } });
      printResult(options, { id, ended: true }, () => `Session ${id} ended. Its terminals close within seconds.`);
    });
  return session;
}

async function endAll(options: EndOptions): Promise<void> {
  const client = me();
  const revoke_tokens = options.revokeTokens ?? (await offerRevocation(client));
  const ended = await client(signOutEverywhere, { body: { revoke_tokens } });
  printResult(options, ended, () =>
    [
      `Signed out everywhere: ${ended.sessions} sessions ended, ${ended.terminals} terminals are closing.`,
      ...endedLines(ended.tokens),
      ...(ended.tokens.some(({ kind }) => kind === "api_token")
        ? ["If this command line used one of these tokens, sign in again: holdfast login"]
        : []),
    ].join("\n"),
  );
}

async function offerRevocation(client: ReturnType<typeof me>): Promise<boolean> {
  const { items } = await client(listMyTokens, {});
  if (items.length === 0) return false;
  const lines = [`You created ${countIssued(items)}:`, issuedTable(items), ...rejoinLines(items)];
  process.stderr.write(`${harmless(lines.join("\n"))}\n`);
  return agreed("Also revoke them?", "--revoke-tokens or --no-revoke-tokens");
}

/** In no particular organization: sessions are the person's. */
function me() {
  return clientOf({ ...findServer({}), orgId: undefined });
}

function sessionTable(items: readonly Session[]): string {
  return table(items, [
    { title: "id", of: (row) => row.id },
    { title: "browser", of: (row) => describeUserAgent(row.user_agent) },
    { title: "signed in", of: (row) => localTime(row.created_at) },
    { title: "from", of: (row) => row.address },
    { title: "last seen", of: (row) => `${ago(row.last_seen_at)} from ${row.last_address ?? "unknown"}` },
    { title: "terminals", of: (row) => String(row.terminals) },
  ]);
}
