// holdfast agent preflight: this host's part of a preflight, also run over SSH by `holdfast preflight --node-host`.

import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { readSettings } from "@holdfast/kit/settings";
import { type Command, Option } from "commander";
import { exitCodes } from "../../failure.ts";
import { printResult } from "../../output.ts";
import { readAllInput } from "../../prompt.ts";

type Options = {
  json?: boolean;
  request?: string;
  nodeRuntimeApiUrl?: string;
  nodeRuntimeResolveAddress?: string;
  nodeTerminalUrl?: string;
  nodeTerminalResolveAddress?: string;
};

export function addPreflight(agent: Command): void {
  agent
    .command("preflight")
    .description("check this host and its way to the server with the node's certificate; takes no task")
    .option("--node-runtime-api-url <url>", "the node-facing API; default: the one that the agent uses")
    .option("--node-runtime-resolve-address <ip>", "where the name of that URL leads")
    .option("--node-terminal-url <url>", "the node-facing terminal listener; default: the profile's")
    .option("--node-terminal-resolve-address <ip>", "where the name of that URL leads")
    .addOption(
      new Option("--request <file>", "a request as JSON; - reads standard input").choices(["-"]).hideHelp(),
    )
    .option("--json", "print JSON")
    .action(preflight);
}

async function preflight(options: Options): Promise<void> {
  const [{ lookAtHost }, { checkedRequest, readPreflightRequest }, { agentSettings }] = await Promise.all([
    import("@holdfast/node-agent/preflight/look"),
    import("@holdfast/node-agent/preflight/request"),
    import("@holdfast/node-agent/settings"),
  ]);
  const { stateDir, diskPressurePercent, nodeApiUrl } = readSettings(agentSettings, process.env);
  const request = options.request
    ? readPreflightRequest(await readAllInput())
    : checkedRequest({
        node_runtime_api_url: options.nodeRuntimeApiUrl,
        node_runtime_resolve_address: options.nodeRuntimeResolveAddress,
        node_terminal_url: options.nodeTerminalUrl,
        node_terminal_resolve_address: options.nodeTerminalResolveAddress,
      });
  const now = Date.now();
  const report = await lookAtHost({ stateDir, diskPressurePercent, apiUrl: nodeApiUrl, request, now });
  const { problems, endpoints, disk } = report;
  printResult(options, report, () =>
    [
      `Host ${report.hostname ?? "unknown"}, node ${report.node_id ?? "none"}, agent ${report.agent_running ? "running" : "not running"}`,
      `Root file system: ${disk?.used_percent ?? "?"} % used, diagnostic path ${disk?.diagnostic_path_writable ? "writable" : "not writable"}`,
      ...endpoints.map(
        ({ name, url, ok, code, detail }) =>
          `${name}  ${url}  ${ok ? "reached, certificate accepted" : `${code}: ${detail}`}`,
      ),
      ...problems.map(({ reason, detail }) => `${titleOf(reason)} (${reason}): ${detail}`),
    ].join("\n"),
  );
  if (problems.length > 0 || endpoints.some(({ ok }) => !ok)) process.exitCode = exitCodes.failed;
}
