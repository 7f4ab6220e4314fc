// holdfast up: runs everything in the foreground until Ctrl-C, SIGTERM or `holdfast down`.

import { redact } from "@holdfast/kit/redact";
import { Command } from "commander";
import { findLocalServer } from "../client/connect.ts";
import { looksRemote, sshLine } from "../up/addresses.ts";
import { dataDirectorySetting } from "../up/data-directory-setting.ts";
import { type Running, startEverything } from "../up/run.ts";
import { type AllSettings, readAllSettings, warningsAboutNames } from "../up/settings.ts";
import { listenForStop, type StopRequest, whenAborted } from "../up/stop-request.ts";
import { type SummaryFacts, summaryLines } from "../up/summary.ts";
import { duration, openTerminal, type Terminal } from "../up/terminal.ts";

export function upCommand(): Command {
  return new Command("up")
    .description("run api, gateway, worker, agent and an embedded PostgreSQL on this machine")
    .option("--json", "print one JSON line when everything is ready; progress goes to stderr")
    .action(async (options: { json?: boolean }) => {
      await runInForeground(options.json === true);
      process.exit(0);
    });
}

async function runInForeground(json: boolean): Promise<void> {
  const stop = listenForStop();
  ignoreClosedOutput();
  const terminal = openTerminal(json ? process.stderr : process.stdout, process.env);
  for (const warning of warningsAboutNames(process.env)) terminal.warn(warning);
  const settings = readAllSettings(process.env);

  const running = await startEverything({ settings, env: process.env, terminal, stop });
  if (running === undefined) return;
  const startedIn = duration(performance.now());
  if (json) process.stdout.write(`${JSON.stringify(readyReport(running))}\n`);
  else await printSummary({ running, terminal, startedIn, settings });
  await stopWhenAsked(running, terminal, stop);
}

async function stopWhenAsked(running: Running, terminal: Terminal, stop: StopRequest): Promise<void> {
  await whenAborted(stop.asked);
  await terminal.step({ doing: "Stopping", done: "Everything stopped" }, async (note) => {
    stop.hurry.addEventListener("abort", () => note("killing the remaining processes"));
    await running.stop();
  });
}

function readyReport(running: Running) {
  return {
    ready: true,
    api_url: running.apiUrl,
    gateway_url: running.gatewayUrl,
    node_api_url: running.nodeApiUrl,
    api_internal_url: running.apiInternalUrl,
    node_terminal_url: running.nodeTerminalUrl,
    gateway_internal_url: running.gatewayInternalUrl,
    agent: running.agent?.record ?? null,
    data_dir: running.data.path,
    database: running.database,
    pid: process.pid,
  };
}

async function printSummary(options: {
  running: Running;
  terminal: Terminal;
  startedIn: string;
  settings: AllSettings;
}): Promise<void> {
  const { running, terminal, startedIn, settings } = options;
  const { ports, data } = running;
  const { publicUrl } = settings.api;
  const listeners = [
    { bind: settings.api.bind, port: ports.api },
    { bind: settings.gateway.bind, port: ports.gateway },
  ];
  const remote = publicUrl === undefined && looksRemote(process.env);
  const lines = summaryLines(
    {
      startedIn,
      pageUrl: publicUrl ?? running.apiUrl,
      gatewayUrl: running.gatewayUrl,
      node: nodeFact(running),
      signIn: await signInFacts(),
      command: commandHere(),
      dataDirectory: data.path,
      logs: data.logs,
      sshLine: remote ? sshLine(listeners, process.env) : undefined,
    },
    terminal.style,
  );
  for (const line of lines) terminal.line(line);
}

/** Undefined while it is being enrolled: a separate line is printed when that is done. */
function nodeFact({ agent }: Running): string | undefined {
  if (!agent) return "disabled: HOLDFAST_UP_AGENT=no";
  const { node_name, reason } = agent.record;
  if (reason !== null) return "not enrolled; the reason is printed above";
  return node_name === null ? undefined : `this machine is enrolled as ${node_name}`;
}

/** A link is a secret: it goes to a person's terminal, never into a file or a service's journal. */
async function signInFacts(): Promise<SummaryFacts["signIn"]> {
  const hint = `${commandHere()} admin link prints a one-time link`;
  if (!process.stdout.isTTY) return { hint };
  const { firstAdminLink } = await import("../up/admin-link.ts");
  try {
    const link = await firstAdminLink(findLocalServer());
    return link === undefined ? undefined : { link };
  } catch (error) {
    return { hint, problem: redact(error instanceof Error ? error.message : String(error)) };
  }
}

/** Started by npm, the command is known to npx and, most likely, to nothing else. */
function commandHere(): string {
  const command = process.env["npm_execpath"] ? "npx holdfast" : "holdfast";
  const dataDir = process.env[dataDirectorySetting.env];
  // Without it, the command would speak of another installation.
  return dataDir ? `${dataDirectorySetting.env}='${dataDir.replaceAll("'", "'\\''")}' ${command}` : command;
}

/** `holdfast up | head` must not end it, and neither must a terminal that was closed. */
function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}
