// holdfast agent connect: runs steps that a gateway dispatches, in the foreground. Pairs first, when it is given a pairing token.

import { hostname } from "node:os";
import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { runProcess } from "@holdfast/kit/lifecycle";
import { kinds, readSettings, UsageError } from "@holdfast/kit/settings";
import type { Credentials } from "@holdfast/node-agent/execution/credentials";
import { type Command, InvalidArgumentError } from "commander";
import { exitCodes, Refusal, UnreachableError } from "../../failure.ts";
import { readAllInput } from "../../prompt.ts";

type ConnectOptions = {
  pairingToken?: string;
  apiBase?: string;
  tags?: string[];
  connectors?: string[];
  name?: string;
  maxInFlight?: number;
  credentials?: string;
};

const MOST_TAGS = 100;
const LONGEST_TAG = 128;
const LONGEST_NAME = 120;
const MOST_IN_FLIGHT = 1000;

export function addConnect(agent: Command): void {
  agent
    .command("connect")
    .description("run steps that a gateway dispatches to this machine, in the foreground")
    .option(
      "--pairing-token <token>",
      "pair this agent first, with a token of the page Agents; `-` reads it from standard input",
    )
    .option("--api-base <url>", "URL of the API, for pairing, such as http://localhost:3001")
    .option(
      "--tags <tags>",
      'tags for targeted dispatch, separated by commas, such as "east,group:alpha"',
      parseTags,
    )
    .option(
      "--connectors <names>",
      "connectors to serve, separated by commas, such as http,github; default: those that connect to nothing",
      parseList,
    )
    .option("--name <name>", "name of the agent; default: the host name", parseName)
    .option("--max-in-flight <count>", "steps to run at the same time; default: 10", parseCount)
    .option("--credentials <file>", "where the agent's token is kept; default: HOLDFAST_EXECUTION_CREDENTIALS")
    .action(connect);
}

async function connect(options: ConnectOptions): Promise<void> {
  const [{ executionSettings }, { createLog }, { openExecutionAgent }, { credentialPaths }, { agentVersion }] =
    await Promise.all([
      import("@holdfast/node-agent/execution/settings"),
      import("@holdfast/node-agent/log"),
      import("@holdfast/node-agent/execution/open"),
      import("@holdfast/node-agent/execution/credentials"),
      import("@holdfast/node-agent/version"),
    ]);
  const settings = readSettings(executionSettings, process.env);
  const log = createLog({ level: settings.logLevel });
  for (const warning of warningsAboutUnsupported(process.env)) log.warn(warning);
  const paths = credentialPaths(options.credentials ? absolute(options.credentials) : settings.credentials);
  const credentials = await credentialsFor(options, paths, settings.caFile);
  const { name, capabilities = { kinds: [] } } = credentials;
  const agent = await explained(() =>
    openExecutionAgent({
      ...{ settings, log, agentVersion, credentialsPath: paths[0] },
      credentials: { ...credentials, name: options.name ?? name },
      tags: options.tags ?? capabilities.tags ?? [],
      ...(options.connectors ? { connectors: options.connectors } : {}),
      maxInFlight: options.maxInFlight ?? capabilities.maxInFlight ?? 10,
    }),
  );
  await runProcess(
    {
      info: (text) => log.info(text),
      fatal: ({ err }: { err?: unknown }, text) => log.error(text, { error: err }),
    },
    async () => ({
      ports: {},
      stop() {
        for (const signal of ["SIGINT", "SIGTERM"] as const) {
          process.on(signal, () => {
            agent.kill();
            process.exit(exitCodes.interrupted);
          });
        }
        log.info("finishing the steps that run; a second signal ends them at once", { running: agent.running() });
        return agent.stop();
      },
    }),
  );
}

/** Stored ones, or those of a new pairing, which replaces the stored ones when it has succeeded. */
async function credentialsFor(
  options: ConnectOptions,
  paths: [string, ...string[]],
  caFile: string | undefined,
): Promise<Credentials> {
  const { digestOfPairingToken, findCredentials, writeCredentials } = await import(
    "@holdfast/node-agent/execution/credentials"
  );
  const { connectorNames } = await import("@holdfast/node-agent/execution/connectors");
  const unknown = options.connectors?.find((one) => !connectorNames.includes(one));
  if (unknown !== undefined) {
    throw new UsageError(`This agent has no connector ${unknown}. Built in: ${connectorNames.join(", ")}.`);
  }
  if (options.pairingToken === undefined) {
    const stored = findCredentials(paths);
    if (stored) return stored.credentials;
    throw new UsageError(
      `This agent is not paired: there are no credentials in ${paths.join(" or ")}. Create a pairing token on the page ` +
        "Agents and run: holdfast agent connect --pairing-token <token> --api-base <url>",
    );
  }
  const pairingToken = options.pairingToken === "-" ? await readAllInput() : options.pairingToken;
  const present = ifUsable(() => findCredentials(paths.slice(0, 1))?.credentials);
  if (present?.pairedWith === digestOfPairingToken(pairingToken)) return present;
  const credentials = await pairWith(options, pairingToken, caFile);
  writeCredentials(paths[0], credentials);
  return credentials;
}

async function pairWith(options: ConnectOptions, pairingToken: string, caFile: string | undefined) {
  const [{ pair, PairingFailure }, { trustWith }, { agentVersion }, { usualConnectors }, { executionKinds }] =
    await Promise.all([
      import("@holdfast/node-agent/execution/pair"),
      import("@holdfast/node-agent/execution/certificates"),
      import("@holdfast/node-agent/version"),
      import("@holdfast/node-agent/execution/connectors"),
      import("@holdfast/contracts/execution/limits"),
    ]);
  const apiBaseUrl = options.apiBase === undefined ? undefined : kinds.httpUrl.parse(options.apiBase);
  if (apiBaseUrl === undefined)
    throw new UsageError(`--api-base is missing or invalid. Allowed: ${kinds.httpUrl.allowed}.`);
  const name = (options.name ?? hostname()).slice(0, LONGEST_NAME);
  const capabilities = {
    kinds: [...executionKinds],
    connectors: [...(options.connectors ?? usualConnectors)],
    tags: options.tags ?? [],
    maxInFlight: options.maxInFlight ?? 10,
  };
  try {
    return await pair({
      apiBaseUrl,
      pairingToken,
      name,
      agentVersion,
      capabilities,
      secureContext: trustWith(caFile),
    });
  } catch (error) {
    if (!(error instanceof PairingFailure)) throw error;
    if (error.kind === "unreachable") throw new UnreachableError(`${error.message}\n  ${error.nextStep}`);
    throw new Refusal(error.code, { message: error.message, nextStep: error.nextStep });
  }
}

/** A file that cannot be used does not keep anybody from pairing again. */
function ifUsable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  const { HostProblem } = await import("@holdfast/node-agent/identity/state-directory");
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof HostProblem)) throw error;
    const { nextStep } = diagnosticReasons[error.reason];
    throw new Refusal(error.reason, { message: error.message, nextStep });
  }
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `${process.cwd()}/${path}`;
}

function parseList(text: string): string[] {
  const all = text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  return [...new Set(all)];
}

function parseTags(text: string): string[] {
  const tags = parseList(text);
  const long = tags.find((tag) => tag.length > LONGEST_TAG);
  if (long !== undefined) throw new InvalidArgumentError(`A tag has up to ${LONGEST_TAG} characters.`);
  if (tags.length > MOST_TAGS) throw new InvalidArgumentError(`An agent has up to ${MOST_TAGS} tags.`);
  return tags;
}

function parseName(text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= LONGEST_NAME) return name;
  throw new InvalidArgumentError(`A name has 1 to ${LONGEST_NAME} characters.`);
}

function parseCount(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MOST_IN_FLIGHT) {
    throw new InvalidArgumentError(`Allowed: a whole number from 1 to ${MOST_IN_FLIGHT}.`);
  }
  return count;
}
