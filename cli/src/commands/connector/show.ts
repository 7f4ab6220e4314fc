// holdfast connector show NAME: its actions, with the schemas of their input and output.

import type { Command } from "commander";
import { z } from "zod";
import { printResult } from "../../output.ts";
import { findConnector } from "./find.ts";

export function addShow(connector: Command): void {
  connector
    .command("show")
    .description("show the actions of a connector: what they accept, return and need")
    .argument("<connector>")
    .option("--json", "print JSON, with the schemas of input and output")
    .action((name: string, options: { json?: boolean }) => {
      const { title, summary, actions } = findConnector(name);
      const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
      const shown = Object.entries(actions).map(([action, { input, output, ...rest }]) => {
        return { action, ...rest, input: schemaOf(input), output: schemaOf(output) };
      });
      printResult(options, { name, title, summary, actions: shown }, () =>
        [
          `${title}: ${summary}.`,
          ...shown.flatMap(({ action, summary: does, effect, secret, input }) => [
            "",
            `${action}: ${does} (${effect})`,
            ...(secret === null ? [] : [`  secret${secret.required ? "" : " (optional)"}: ${secret.what}`]),
            ...Object.keys(input.properties ?? {}).map(
              (field) => `  ${field}${input.required?.includes(field) ? " (required)" : ""}`,
            ),
          ]),
        ].join("\n"),
      );
    });
}
