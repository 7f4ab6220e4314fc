// holdfast key: the keys that the platform signs with. It goes by the token file of the machine, so whoever may read
// that may do this.

import {
  listTaskSigningKeys,
  rotateTaskSigningKey,
  type TaskSigningKey,
} from "@holdfast/contracts/endpoints/task-signing-keys";
import { Argument, Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";

const words: Record<TaskSigningKey["state"], string> = {
  next: "○ signs soon",
  signing: "● signs",
  verifying: "◌ verifies only",
};

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
          { title: "state", of: (row) => words[row.state] },
          { title: "signs from", of: (row) => localTime(row.signs_from) },
          { title: "verifies until", of: (row) => localTime(row.verifies_until) ?? "another follows" },
        ]),
      );
    });
  key
    .command("rotate")
    .description("make the next key; the present one signs for two more minutes and verifies for two more days")
    .addArgument(new Argument("<key>", "which one").choices(["task-signing"]))
    .option("--json", "print JSON")
    .action(async (_: string, options: { json?: boolean }) => {
      const rotated = await clientOf(findServerToAdminister())(rotateTaskSigningKey, {});
      printResult(options, rotated, ({ present, next }) =>
        [
          `The next key is ${next.kid}. Nodes learn of it with their heartbeats; it signs from ${localTime(next.signs_from)}.`,
          `Until then ${present.kid} signs, and what it has signed is good until ${localTime(present.verifies_until)}.`,
        ].join("\n"),
      );
    });
  return key;
}
