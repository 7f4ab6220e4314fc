// holdfast connector try CONNECTOR ACTION: shows what an action would send. It sends nothing: a step of a workflow does that.

import { UsageError } from "@holdfast/kit/settings";
import { describeAction } from "@holdfast/workflows/connectors/run-action";
import type { Command } from "commander";
import { Refusal } from "../../failure.ts";
import { jsonText } from "../../output.ts";
import { findConnector } from "./find.ts";

export function addTry(connector: Command): void {
  connector
    .command("try")
    .description("check the input of an action and show what it would send, without sending it")
    .argument("<connector>")
    .argument("<action>")
    .option("--input <json>", "input of the action, as JSON", "{}")
    .option("--dry-run", "send nothing; the only way there is")
    .action(async (name: string, action: string, options: { input: string }) => {
      findConnector(name);
      const request = { connector: name, action, input: parsed(options.input), idempotencyKey: "try" };
      const described = await describeAction(request);
      if ("message" in described) {
        process.stdout.write(`${jsonText(described.message)}\n`);
        return;
      }
      const { code, message } = described.failure;
      const nextStep = `See what it accepts: \`holdfast connector show ${name}\`.`;
      throw new Refusal(code, { message, nextStep });
    });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError("--input is not JSON.");
  }
}
