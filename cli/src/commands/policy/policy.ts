// holdfast policy: limits of the platform that change without a restart. It uses the machine's operator token, so whoever can
// read that file can run this.

import {
  changePolicy,
  listPolicy,
  type PolicyKey,
  type PolicyValue,
  policyKeys,
} from "@holdfast/contracts/endpoints/policy";
import { Argument, Command } from "commander";
import { clientOf, findServerToAdminister } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";

type Options = { json?: boolean; reason?: string };

export function policyCommand(): Command {
  const policy = new Command("policy").description("limits of the platform that change without a restart");
  policy
    .command("show", { isDefault: true })
    .description("list all values, their defaults and what is allowed")
    .option("--json", "print JSON")
    .action(async (options: Options) => {
      const found = await clientOf(findServerToAdminister())(listPolicy, {});
      printResult(options, found, ({ items }) =>
        table(items, [
          { title: "key", of: ({ key }) => key },
          { title: "value", of: ({ value }) => value },
          { title: "default", of: ({ default_value }) => default_value },
          { title: "changed", of: ({ changed_at }) => localTime(changed_at) ?? "–" },
          { title: "allowed", of: ({ allowed }) => allowed },
        ]),
      );
    });
  const change = async (key: PolicyKey, value: string | null, options: Options) => {
    const { reason } = options;
    const body = { key, value, ...(reason === undefined ? {} : { reason }) };
    printResult(options, await clientOf(findServerToAdminister())(changePolicy, { body }), describe);
  };
  const withOptions = (command: Command) =>
    command
      .option("--reason <text>", "why; required if the new value is weaker, and recorded in the audit")
      .option("--json", "print JSON");
  const key = () => new Argument("<key>", "the value to change").choices(policyKeys);
  withOptions(policy.command("set").addArgument(key()).argument("<value>", "the new value"))
    .description("change a value; all processes use it within two seconds")
    .action((name: PolicyKey, value: string, options: Options) => change(name, value, options));
  withOptions(policy.command("reset").addArgument(key()))
    .description("go back to the default, the setting of the processes")
    .action((name: PolicyKey, options: Options) => change(name, null, options));
  return policy;
}

function describe({ key, value, default_value, changed_at }: PolicyValue): string {
  const rest = changed_at === null ? "the default" : `default: ${default_value}`;
  return `${key} is ${value} (${rest}). All processes use it within two seconds.`;
}
