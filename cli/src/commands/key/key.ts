// holdfast key: the keys that the platform signs with. It uses the machine's operator token, so whoever can read that
// file can run this.

import {
  listTaskSigningKeys,
  rotateTaskSigningKey,
  type TaskSigningKey,
} from "@holdfast/contracts/endpoints/task-signing-keys";
import { taskSigningKeyTitles } from "@holdfast/contracts/words/state-titles";
import { Argument, Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";

const shapes: Record<TaskSigningKey["state"], string> = {
  next: "○",
  signing: "●",
  verifying: "◌",
};

function stateOf({ state }: TaskSigningKey): string {
  return `${shapes[state]} ${taskSigningKeyTitles[state].title.toLowerCase()}`;
}

export function keyCommand(): Command {
  const key = new Command("key").description("the keys that tasks are signed with");
  key
    .command("list")
    .description("list the keys that sign tasks or still verify them, newest first")
    .option("--json", "print JSON")
    .action(async (options: { json?: boolean }) => {
      const keys = await clientOf(findServerToAdminister())(listTaskSigningKeys, {});
      printResult(options, keys, ({ items }) =>
        table(items, [
          { title: "kid", of: (row) => row.kid },
          { title: "for", of: () => "task-signing" },
          { title: "state", of: stateOf },
          { title: "signs from", of: (row) => localTime(row.signs_from) },
          { title: "verifies until", of: (row) => localTime(row.verifies_until) ?? "until replaced" },
        ]),
      );
    });
  key
    .command("rotate")
    .description(
      "create the next key; the current one signs for two more minutes and is accepted for two more days",
    )
    .addArgument(new Argument("<key>", "the key to rotate").choices(["task-signing"]))
    .option("--json", "print JSON")
    .action(async (_: string, options: { json?: boolean }) => {
      const rotated = await clientOf(findServerToAdminister())(rotateTaskSigningKey, {});
      printResult(options, rotated, ({ present, next }) =>
        [
          `Created key ${next.kid}. Nodes receive it with their next heartbeat; it signs from ${localTime(next.signs_from)}.`,
          `Until then ${present.kid} signs. Its signatures are accepted until ${localTime(present.verifies_until)}.`,
        ].join("\n"),
      );
    });
  return key;
}
