// holdfast connector list

import type { Command } from "commander";
import { printResult } from "../../output.ts";
import { connectors } from "./find.ts";

export function addList(connector: Command): void {
  connector
    .command("list")
    .description("list the connectors and their actions")
    .option("--json", "print JSON")
    .action((options: { json?: boolean }) => {
      const items = Object.values(connectors).map(({ name, summary, actions }) => {
        return { name, summary, actions: Object.keys(actions) };
      });
      printResult(options, { items }, () =>
        items
          .map(({ name, summary, actions }) => `${name.padEnd(8)} ${summary}: ${actions.join(", ")}`)
          .join("\n"),
      );
    });
}
