// holdfast workflow validate FILE: whether a document can be published. Needs no server.

import { nextTimes } from "@holdfast/workflows/validate/schedule";
import type { Command } from "commander";
import { localTime, printResult } from "../../output.ts";
import { readDocument } from "./file.ts";

export function addValidate(workflow: Command): void {
  workflow
    .command("validate")
    .description("check a workflow document without a server")
    .argument("<file>", "YAML or JSON; - for standard input")
    .option("--json", "print JSON")
    .action((file: string, options: { json?: boolean }) => {
      const { document, version } = readDocument(file);
      const schedules = (document.triggers ?? []).flatMap((trigger) => {
        if (trigger.type !== "cron") return [];
        const { schedule, timezone = "UTC" } = trigger;
        const next = nextTimes(trigger, new Date(), 3).map((time) => time.toISOString());
        return [{ schedule, timezone, next }];
      });
      const result = { valid: true, version, nodes: Object.keys(document.nodes), schedules };
      printResult(options, result, () =>
        [
          `${file} is valid: ${result.nodes.length} ${result.nodes.length === 1 ? "node" : "nodes"}.`,
          ...(version === "v2"
            ? ["It is a v2 document. `holdfast workflow convert` prints it as version 1."]
            : []),
          ...schedules.map(
            ({ schedule, timezone, next }) =>
              `Schedule "${schedule}" (${timezone}), next: ${next.map(localTime).join(", ")}`,
          ),
        ].join("\n"),
      );
    });
}
