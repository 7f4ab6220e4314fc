// `holdfast up` from beginning to end: look first (settings, lock, ports), then start from the
// bottom (PostgreSQL, migrations, processes), stay, and stop in the opposite order. Whatever was
// started is stopped again when a later step fails.

import { configuredLogins, setUpDatabase } from "@holdfast/control-plane/database/logins";
import { type Environment, UsageError } from "@holdfast/kit/settings";
import { isLoopback } from "@holdfast/service/settings";
import { urlOf } from "./addresses.ts";
import { expectedAgent, type LocalAgent, startLocalAgent } from "./agent.ts";
import { type Ports, startChildren } from "./children.ts";
import { type DataDirectory, openDataDirectory } from "./data-directory.ts";
import { superviseDatabase } from "./database.ts";
import { askExternalDatabase } from "./external-database.ts";
import { endLeftOverChildren } from "./left-over-children.ts";
import { type Lock, takeLock } from "./lock.ts";
import { occupied } from "./occupied.ts";
import { checkPorts } from "./ports.ts";
import { digestOf, ensureDispatchToken, ensureKek, ensureOperatorToken, makeServiceToken } from "./secrets.ts";
import { type AllSettings, processSettings } from "./settings.ts";
import type { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { keepUpFile, readUpFile, removeUpFile } from "./up-file.ts";

export type Running = {
  apiUrl: string;
  gatewayUrl: string;
  nodeApiUrl: string;
  apiInternalUrl: string;
  nodeTerminalUrl: string;
  gatewayInternalUrl: string;
  ports: Ports;
  /** Undefined when HOLDFAST_UP_AGENT is no. */
  agent: LocalAgent | undefined;
  data: DataDirectory;
  database: { embedded: boolean; version: string };
  stop(): Promise<void>;
};

type Start = { settings: AllSettings; env: Environment; terminal: Terminal; stop: StopRequest };
type Undo = () => Promise<void> | void;

const databaseReady = { doing: "Starting PostgreSQL", done: "PostgreSQL accepts connections" };
const processesReady = { doing: "Starting api, gateway and worker", done: "api, gateway and worker are ready" };

/** Undefined when it was asked to stop before it was ready; then everything is stopped again. */
export async function startEverything(start: Start): Promise<Running | undefined> {
  const undo: Undo[] = [];
  const stopAll = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const running = await startInOrder(start, undo);
    return { ...running, stop: stopAll };
  } catch (error) {
    await stopAll();
    if (start.stop.asked.aborted) return undefined;
    throw error;
  }
}

async function startInOrder(start: Start, undo: Undo[]): Promise<Omit<Running, "stop">> {
  const { settings, env, terminal, stop } = start;
  const embedded = settings.api.databaseUrl === undefined;
  const configured = configuredLogins(settings.api);
  if (embedded && configured) {
    const { databaseUrl, appDatabaseUrl } = processSettings.api;
    throw new UsageError(
      `${appDatabaseUrl.env} is set, but ${databaseUrl.env} is not. \`holdfast up\` needs it too, with the owner's login; ` +
        "without it, run `holdfast api`, `holdfast worker` and `holdfast gateway` separately.",
    );
  }
  const data = openDataDirectory(settings.dataDir, { othersPassThrough: embedded && process.getuid?.() === 0 });
  const lock = await lockOrExplain(data);
  undo.push(() => lock.release());

  await clearEarlierStart(data, terminal);
  await checkPorts(listenersOf(settings));
  const kek = settings.api.kek?.toString("base64") ?? ensureKek(data);
  const operatorToken = ensureOperatorToken(data);
  const dispatchToken = settings.gateway.dispatchToken ?? ensureDispatchToken(data);

  const wantsAgent = settings.runsAgent === "yes";
  const upFile = keepUpFile(data.upFile, {
    embedded,
    agent: wantsAgent ? expectedAgent({ settings, env, data }) : null,
  });
  undo.push(() => removeUpFile(data.upFile));

  const database = await openDatabase(start, data);
  undo.push(() => database.stop(stop));
  upFile.change({ database: { embedded, version: database.version } });
  const schemaReady = { doing: "Updating the schema", done: "Schema is up to date" };
  const logins = await terminal.step(schemaReady, async (note) => {
    const ready = await setUpDatabase({ ownerUrl: database.ownerUrl, logins: configured });
    if (ready.applied.length > 0) note(`applied ${ready.applied.length} migrations`);
    return ready.logins;
  });
  stop.asked.throwIfAborted();

  const children = startChildren({
    data,
    env,
    logins,
    kek,
    operatorTokenSha256: digestOf(operatorToken),
    serviceToken: settings.api.serviceToken ?? makeServiceToken(),
    dispatchToken,
    internal: { bind: settings.api.internalBind, port: settings.api.internalPort },
    gatewayInternal: {
      bind: settings.gateway.internalBind,
      port: settings.gateway.internalPort,
      tls: !isLoopback(settings.gateway.internalBind),
    },
    events: { onStarted: upFile.childStarted, report: (text) => terminal.warn(text) },
  });
  undo.push(() => children.stop(stop));
  const ports = await terminal.step(processesReady, () => unlessStopped(children.ready, stop));

  const urls = addressesOf(settings, ports);
  upFile.change({
    ready: true,
    api_url: urls.apiUrl,
    gateway_url: urls.gatewayUrl,
    node_api_url: urls.nodeApiUrl,
    api_internal_url: urls.apiInternalUrl,
    node_terminal_url: urls.nodeTerminalUrl,
    gateway_internal_url: urls.gatewayInternalUrl,
    // A token of a setting is where its owner put it.
    dispatch_token_file: settings.gateway.dispatchToken === undefined ? data.dispatchToken : null,
    tls_cert_file: settings.api.tlsCertFile ?? null,
  });
  const agent = !wantsAgent
    ? undefined
    : startLocalAgent({
        settings,
        env,
        data,
        server: { url: urls.apiUrl, token: operatorToken, certificateFile: settings.api.tlsCertFile },
        nodeApiUrl: urls.nodeApiUrl,
        onStarted: (pid) => upFile.childStarted("agent", pid),
        onChanged: (record) => upFile.change({ agent: { ...record } }),
        onJoined: (name) => terminal.line(`${terminal.style.accent("✓")} This machine is enrolled as ${name}`),
        report: (text) => terminal.warn(text),
      });
  undo.push(() => agent?.stop(stop));
  return { ...urls, ports, agent, data, database: { embedded, version: database.version } };
}

/** How this machine reaches the listeners. */
function addressesOf(settings: AllSettings, ports: Ports) {
  const { api, gateway } = settings;
  return {
    apiUrl: urlOf({ bind: api.bind, port: ports.api, tls: api.tlsCertFile !== undefined }),
    gatewayUrl: urlOf({ bind: gateway.bind, port: ports.gateway, tls: gateway.tlsCertFile !== undefined }),
    nodeApiUrl: urlOf({ bind: api.nodeBind, port: ports.node, tls: true }),
    apiInternalUrl: urlOf({ bind: api.internalBind, port: ports.internal, tls: true }),
    nodeTerminalUrl: urlOf({ bind: gateway.nodeBind, port: ports.nodeTerminal, tls: true }),
    gatewayInternalUrl: urlOf({
      bind: gateway.internalBind,
      port: ports.gatewayInternal,
      tls: !isLoopback(gateway.internalBind),
    }),
  };
}

async function lockOrExplain(data: DataDirectory): Promise<Lock> {
  const lock = await takeLock(data.lock);
  if (lock === undefined) throw occupied(data);
  return lock;
}

async function clearEarlierStart(data: DataDirectory, terminal: Terminal): Promise<void> {
  const earlier = readUpFile(data.upFile);
  if (earlier) await endLeftOverChildren(earlier, (text) => terminal.line(`  ${text}`));
}

function listenersOf({ api, gateway }: AllSettings) {
  const { api: ofApi, gateway: ofGateway } = processSettings;
  return [
    { process: "api", port: api.port, bind: api.bind, setting: ofApi.port.env },
    { process: "api", port: api.nodePort, bind: api.nodeBind, setting: ofApi.nodePort.env },
    { process: "api", port: api.internalPort, bind: api.internalBind, setting: ofApi.internalPort.env },
    { process: "gateway", port: gateway.port, bind: gateway.bind, setting: ofGateway.port.env },
    { process: "gateway", port: gateway.nodePort, bind: gateway.nodeBind, setting: ofGateway.nodePort.env },
    {
      ...{ process: "gateway", port: gateway.internalPort, bind: gateway.internalBind },
      setting: ofGateway.internalPort.env,
    },
  ];
}

type OpenDatabase = {
  ownerUrl: string;
  version: string;
  stop(how: StopRequest): Promise<void>;
};

async function openDatabase(start: Start, data: DataDirectory): Promise<OpenDatabase> {
  const { settings, terminal, stop } = start;
  const url = settings.api.databaseUrl;
  if (url !== undefined) {
    const version = await terminal.step(
      { doing: "Connecting to PostgreSQL", done: "PostgreSQL is reachable" },
      () => askExternalDatabase(url),
    );
    return { ownerUrl: url, version, stop: async () => undefined };
  }
  return terminal.step(databaseReady, (onProgress) =>
    superviseDatabase({
      directory: data.postgres,
      runAs: settings.postgresUser,
      signal: stop.asked,
      onProgress,
      report: (text) => terminal.warn(text),
    }),
  );
}

async function unlessStopped<T>(work: Promise<T>, stop: StopRequest): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const onStop = () => stopped.reject(stop.asked.reason);
  stop.asked.addEventListener("abort", onStop, { once: true });
  if (stop.asked.aborted) onStop();
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    stop.asked.removeEventListener("abort", onStop);
  }
}
