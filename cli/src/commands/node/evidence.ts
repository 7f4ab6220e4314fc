// holdfast node evidence: hands in what was seen on a host that the server cannot reach.

import { readFileSync } from "node:fs";
import { addNodeEvidence, HandedIn } from "@holdfast/contracts/endpoints/drift";
import { UsageError } from "@holdfast/kit/settings";
import { type Command, Option } from "commander";
import type { z } from "zod";
import { clientOf, findServerAndOrg, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";
import { describeExplanation } from "./explain.ts";

type Body = z.input<typeof HandedIn>;
type Options = ServerOptions & {
  diagnostics?: string;
  ssh?: Body["ssh"];
  guestAgent?: Body["guest_agent"];
  service?: Body["host_service"];
  binary?: Body["host_exec"];
};

export function addEvidence(node: Command): void {
  const choice = (flags: string, help: string, field: "ssh" | "guest_agent" | "host_service" | "host_exec") =>
    new Option(flags, help).choices(HandedIn.shape[field].unwrap().options);
  withServerOptions(node.command("evidence"))
    .description("hand in what you saw on a host that does not report, and explain the node with it")
    .argument("<node>", "id or name")
    .option("--diagnostics <file>", "diagnostics.log of the agent's state directory; - reads standard input")
    .addOption(choice("--ssh <result>", "whether you can log in to the host", "ssh"))
    .addOption(choice("--guest-agent <state>", "the provider's guest agent on the host", "guest_agent"))
    .addOption(choice("--service <state>", "the agent's service on the host: systemctl is-active", "host_service"))
    .addOption(choice("--binary <state>", "whether the agent's binary starts on the host", "host_exec"))
    .action(async (wanted: string, options: Options) => {
      const body = bodyOf(options);
      const server = await findServerAndOrg(options);
      const client = clientOf(server);
      const { id } = await findNode(client, wanted);
      const explained = await client(addNodeEvidence, { params: { node_id: id }, body });
      printResult(options, explained, () => describeExplanation(explained, server));
    });
}

function bodyOf({ diagnostics, ssh, guestAgent, service, binary }: Options): Body {
  if (!(diagnostics || ssh || guestAgent || service || binary)) {
    throw new UsageError(
      "Nothing to hand in. Give at least one of --diagnostics, --ssh, --guest-agent, --service, --binary.",
    );
  }
  return {
    ...(diagnostics ? { records: recordsIn(diagnostics) } : {}),
    ...(ssh ? { ssh } : {}),
    ...(guestAgent ? { guest_agent: guestAgent } : {}),
    ...(service ? { host_service: service } : {}),
    ...(binary ? { host_exec: binary } : {}),
  };
}

/** As many as the server takes. */
const MOST_RECORDS = 64;

type Sent = NonNullable<Body["records"]>[number];
type Kept = Sent & { seq?: number };

/** The newest. The file is written in a circle, and a line of it may be torn. */
function recordsIn(path: string): Sent[] {
  const text = read(path);
  const records = text.split("\n").flatMap((line): Kept[] => {
    try {
      const found = JSON.parse(line) as Kept | null;
      return found && typeof found.reason === "string" && typeof found.at === "string" ? [found] : [];
    } catch {
      return [];
    }
  });
  if (records.length === 0) {
    throw new UsageError(
      `${path === "-" ? "Standard input" : path} contains no diagnostic records. The file is diagnostics.log in the agent's state directory.`,
    );
  }
  return records
    .sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0))
    .slice(-MOST_RECORDS)
    .map(({ at, last_at = at, reason, detail, correlation_id, host }) => ({
      ...{ at, last_at, reason, detail, correlation_id },
      ...(host ? { host } : {}),
    }));
}

function read(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}
