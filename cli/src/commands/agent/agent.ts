// holdfast agent join, run, diagnose: what is done on a host that is, or becomes, a node.

import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/node-agent/log";
import { Command, Option } from "commander";
import { exitCodes, Refusal, UnreachableError } from "../../failure.ts";
import { printResult, printWarnings } from "../../output.ts";
import { readAllInput } from "../../prompt.ts";

type JoinOptions = { token?: string; api?: string; name?: string; force?: boolean; json?: boolean };

export function agentCommand(): Command {
  const agent = new Command("agent").description("the agent on this machine");
  agent
    .command("join")
    .description("make this machine a node, with a token from `holdfast node token create`")
    .option(
      "--token <token>",
      "the token; `-` reads it from standard input; else HOLDFAST_ENROLLMENT_TOKEN or HOLDFAST_BOOTSTRAP_TOKEN is used",
    )
    .option("--api <url>", "the server's address, as printed with the token; else HOLDFAST_NODE_API_URL is used")
    .option("--name <name>", "what the node is called; else HOLDFAST_NODE_NAME is used, else its host name")
    .option("--force", "become a new node, even if this machine is one already")
    .option("--json", "print JSON")
    .action(joinThisMachine);
  agent
    .command("run")
    .description("run the agent until it is stopped, configured by the environment")
    .addOption(new Option("--json", "its log lines are JSON with or without it").hideHelp())
    .action(async () => {
      const { runAgent } = await import("./run.ts");
      await runAgent();
    });
  agent
    .command("diagnose")
    .description("explain the state of this machine's agent, without asking the server")
    .option("--json", "print JSON")
    .action(diagnose);
  return agent;
}

async function joinThisMachine(options: JoinOptions): Promise<void> {
  const [{ join, JoinFailure }, { HostProblem }, { joinSettings }, { detectHost }, { agentVersion }] =
    await Promise.all([
      import("@holdfast/node-agent/identity/join"),
      import("@holdfast/node-agent/identity/state-directory"),
      import("@holdfast/node-agent/settings"),
      import("@holdfast/node-agent/host/facts"),
      import("@holdfast/node-agent/version"),
    ]);
  const settings = readSettings(joinSettings, process.env);
  printWarnings(warningsAboutUnsupported(process.env));
  const { stateDir, advertiseAddress } = settings;
  const fromEnvironment = settings.enrollmentToken ?? settings.bootstrapToken;
  const token = options.token === "-" ? await readAllInput() : (options.token ?? fromEnvironment);
  if (token === undefined) {
    throw new UsageError(
      "Give the token with --token, or in HOLDFAST_ENROLLMENT_TOKEN or HOLDFAST_BOOTSTRAP_TOKEN.",
    );
  }
  const apiUrl = options.api ?? settings.nodeApiUrl;
  if (apiUrl === undefined) throw new UsageError("Give the server's address with --api.");
  const host = detectHost({ agentVersion, stateDir, advertisedAddress: advertiseAddress ?? null });
  try {
    const joined = await join({
      token,
      apiUrl,
      stateDir,
      nodeName: options.name ?? settings.nodeName,
      force: options.force,
      facts: host.hostFacts(),
      log: toStderr,
    });
    const { nodeId, nodeName, orgId, nodeApiUrl, rekeyed } = joined;
    const result = {
      node_id: nodeId,
      node_name: nodeName,
      org_id: orgId,
      node_api_url: nodeApiUrl,
      state_dir: stateDir,
      rekeyed,
    };
    printResult(options, result, () =>
      [
        `This machine ${rekeyed ? "has a new key as" : "is now"} the node ${nodeName} (${nodeId}).`,
        "Run its agent: holdfast agent run",
      ].join("\n"),
    );
  } catch (error) {
    if (error instanceof HostProblem) {
      const { nextStep } = diagnosticReasons[error.reason];
      throw new Refusal(error.reason, { message: error.message, nextStep });
    }
    if (!(error instanceof JoinFailure)) throw error;
    if (error.kind === "unreachable") throw new UnreachableError(`${error.message}\n  ${error.nextStep}`);
    throw new Refusal(error.code, { message: error.message, nextStep: error.nextStep });
  }
}

/** What the join tries again after. */
const toStderr: Log = {
  debug() {},
  info() {},
  warn: (_message, fields) => printWarnings([`${fields?.["detail"]} Trying again.`]),
  error() {},
};

async function diagnose(options: { json?: boolean }): Promise<void> {
  const [{ explain, lookAt }, { agentSettings }] = await Promise.all([
    import("@holdfast/node-agent/diagnostics/explain"),
    import("@holdfast/node-agent/settings"),
  ]);
  const { stateDir, diskPressurePercent } = readSettings(agentSettings, process.env);
  const now = Date.now();
  const picture = lookAt(stateDir, { now, diskPressurePercent });
  printResult(options, picture, () => explain(picture, now).join("\n"));
  const isWell = picture.state === "enrolled" && picture.findings.length === 0 && picture.last_problem === null;
  if (!isWell) process.exitCode = exitCodes.failed;
}
