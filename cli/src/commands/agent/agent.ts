// holdfast agent join, run, diagnose, preflight, bundle, remove-vms: commands for a host that is, or becomes, a node; and connect and sandbox, for one that runs steps.

import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/node-agent/log";
import { Command, Option } from "commander";
import { exitCodes, Refusal, UnreachableError } from "../../failure.ts";
import { printResult, printWarnings } from "../../output.ts";
import { readAllInput } from "../../prompt.ts";
import { addBundle } from "./bundle.ts";
import { addConnect } from "./connect.ts";
import { addPreflight } from "./preflight.ts";
import { addRemoveVms } from "./remove-vms.ts";
import { addSandbox } from "./sandbox.ts";

type JoinOptions = { token?: string; api?: string; name?: string; force?: boolean; json?: boolean };

export function agentCommand(): Command {
  const agent = new Command("agent").description("the agent on this machine");
  agent
    .command("join")
    .description("enroll this machine as a node, with a token from `holdfast node token create`")
    .option(
      "--token <token>",
      "the token, or `-` to read it from standard input; default: HOLDFAST_ENROLLMENT_TOKEN or HOLDFAST_BOOTSTRAP_TOKEN",
    )
    .option("--api <url>", "the server's URL, as printed with the token; default: HOLDFAST_NODE_API_URL")
    .option("--name <name>", "name of the node; default: HOLDFAST_NODE_NAME, else the host name")
    .option("--force", "enroll as a new node, even if this machine already is one")
    .option("--json", "print JSON")
    .action(joinThisMachine);
  agent
    .command("run")
    .description("run the agent in the foreground, configured by environment variables")
    .addOption(new Option("--json", "log lines are always JSON").hideHelp())
    .action(async () => {
      const { runAgent } = await import("./run.ts");
      await runAgent();
    });
  agent
    .command("diagnose")
    .description("explain the state of this machine's agent, without contacting the server")
    .option("--json", "print JSON")
    .action(diagnose);
  addPreflight(agent);
  addBundle(agent);
  addRemoveVms(agent);
  addConnect(agent);
  addSandbox(agent);
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
      "The token is missing. Use --token, HOLDFAST_ENROLLMENT_TOKEN or HOLDFAST_BOOTSTRAP_TOKEN.",
    );
  }
  const apiUrl = options.api ?? settings.nodeApiUrl;
  if (apiUrl === undefined)
    throw new UsageError("The server's URL is missing. Use --api or HOLDFAST_NODE_API_URL.");
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
        `This machine ${rekeyed ? "has a new identity as" : "is enrolled as"} node ${nodeName} (${nodeId}).`,
        "Start its agent: holdfast agent run",
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

/** Reports why the join is retried. */
const toStderr: Log = {
  debug() {},
  info() {},
  warn: (_message, fields) => printWarnings([`${fields?.["detail"]} Retrying.`]),
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
