// The value of a secret, from standard input or a prompt without echo, and never from an argument.

import { UsageError } from "@holdfast/kit/settings";
import { type Command, Option } from "commander";
import { ask, readAllInput } from "../../prompt.ts";

const NEVER_AN_ARGUMENT =
  "A value is never taken from an argument: other users of this machine can read arguments in the process list, and shells keep them in " +
  "their history. Pipe the value into the command, such as `holdfast secret set <name> < file`, or run it without one to be asked. " +
  "A value that was passed as an argument is no longer secret: replace it where it came from.";

/** The command takes a name; whatever follows it, or stands behind `--value`, is refused with the reason. */
export function refusingValues(command: Command): Command {
  return command
    .allowExcessArguments(true)
    .addOption(new Option("--value <value>").hideHelp())
    .hook("preAction", (_, acting) => {
      if (acting.args.length > 1 || acting.opts()["value"] !== undefined) throw new UsageError(NEVER_AN_ARGUMENT);
    });
}

/** One line break at its end is not part of it: editors and `echo` add it. */
export async function readValue(name: string): Promise<string> {
  const value = process.stdin.isTTY
    ? await ask(`Value of ${name} (not shown)`, { secret: true, instead: "a pipe" })
    : await readAllInput();
  if (value === "") throw new UsageError(`No value was given for ${name}: standard input was empty.`);
  return value;
}
