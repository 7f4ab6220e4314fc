// The control host of a lab: api and worker as `holdfast api` and `holdfast worker` run them, and the people at the
// desk who ask them.

import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { type Logins, loginEnvironment } from "@holdfast/control-plane/database/settings";
import { holdfast } from "./command.ts";
import { API_NAME, API_PORT, type Network } from "./network.ts";
import { type Line, type RunningProgram, start } from "./program.ts";
import { sshCommands } from "./ssh.ts";

export type Control = {
  /** Of the api, as people have it. */
  url: string;
  /** As an administrator of the installation. */
  operator: Client;
  api(): RunningProgram;
  /** Of the api, those of processes that have ended included. */
  lines(): Line[];
  worker(): RunningProgram;
  /** Of commands at the desk. */
  environment: Record<string, string>;
  /** `holdfast …` at the desk, as a user types it. */
  holdfast(...args: string[]): Promise<Printed>;
  /** The same, with this typed into it. */
  typed(input: string, ...args: string[]): Promise<Printed>;
  /** What an ingress gets its certificates by. */
  ingressToken: string;
  /** Resolves when the next poll of this node is held. */
  pollHeld(nodeId: string): Promise<unknown>;
  /** Again, or after it was killed. */
  startApi(env?: Record<string, string>): Promise<void>;
  /** The server's processes are stopped; this is done; they are started. */
  whileStopped(work: () => Promise<void>): Promise<void>;
};

type Printed = { code: number; stdout: string; stderr: string };

export async function openControl(options: {
  network: Network;
  directory: string;
  logins: Logins;
  /** Undefined: pace and limits as by default. */
  staleAfterSeconds: number | undefined;
  /** For api and worker, beyond the usual. */
  env?: Record<string, string> | undefined;
  /** For the api alone. */
  apiEnv?: Record<string, string> | undefined;
  /** The operator sees a wrong hop and a wrong signal. */
  falsify: boolean;
}): Promise<Control> {
  const { network, directory } = options;
  const { desk, host } = network.control;
  const operatorToken = `hfo_${randomBytes(32).toString("base64url")}`;
  const ingressToken = randomBytes(32).toString("base64url");
  const baseUrl = `http://${desk}:3001`;
  const pace: Record<string, string> =
    options.staleAfterSeconds === undefined
      ? {}
      : {
          HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS: String(options.staleAfterSeconds),
          HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS: "1",
        };
  const env = {
    ...loginEnvironment(options.logins),
    HOLDFAST_DATABASE_POOL_SIZE: "4",
    HOLDFAST_MIGRATE_ON_START: "no",
    HOLDFAST_KEK_BASE64: randomBytes(32).toString("base64"),
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(operatorToken).digest("hex"),
    HOLDFAST_INGRESS_TOKEN: ingressToken,
    HOLDFAST_API_BIND: desk,
    // The cable between desk and control host is the lab's own.
    HOLDFAST_TRUSTED_PROXIES: network.deskAddress,
    HOLDFAST_PUBLIC_URL: baseUrl,
    HOLDFAST_NODE_API_BIND: "0.0.0.0",
    HOLDFAST_NODE_API_URL: `https://${API_NAME}:${API_PORT}`,
    ...pace,
    HOLDFAST_API_LOG_LEVEL: "trace",
    HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "0",
    ...options.env,
  };
  const launch = (more: Record<string, string> = {}) =>
    start({
      host,
      name: "api",
      command: [process.execPath, holdfast, "api"],
      env: { ...env, ...options.apiEnv, ...more },
      logFile: join(directory, "api.log"),
    });
  const apis = [launch()];
  const api = () => apis.at(-1) as RunningProgram;
  const launchWorker = () =>
    start({
      host,
      name: "worker",
      command: [process.execPath, holdfast, "worker"],
      env: Object.assign({}, loginEnvironment(options.logins), pace, options.env),
      logFile: join(directory, "worker.log"),
    });
  let worker = launchWorker();
  // What the worker notices is waited for with limits: they do not hold while it starts.
  const areReady = () => Promise.all([api().ready, worker.ready]);
  await areReady();
  const settings = { PATH: `${sshCommands(directory)}:${process.env["PATH"]}`, HOME: directory };
  const environment = { ...settings, HOLDFAST_API_URL: baseUrl, HOLDFAST_TOKEN: operatorToken };
  const typed: Control["typed"] = (input, ...args) =>
    new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [holdfast, ...args],
        { env: environment },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
      child.stdin?.on("error", () => undefined).end(input);
    });
  return {
    url: baseUrl,
    operator: createClient({ baseUrl, token: operatorToken, fetch: options.falsify ? falseDashboard : bounded }),
    api,
    lines: () => apis.flatMap((one) => one.lines()),
    worker: () => worker,
    ingressToken,
    pollHeld: (nodeId) => api().line(({ msg, node_id }) => msg === "poll held" && node_id === nodeId, Date.now()),
    async startApi(more) {
      await api().stop("SIGKILL");
      apis.push(launch(more));
      await api().ready;
    },
    async whileStopped(work) {
      await Promise.all([api().stop(), worker.stop()]);
      await work();
      apis.push(launch());
      worker = launchWorker();
      await areReady();
    },
    holdfast: (...args) => typed("", ...args),
    ...{ typed, environment },
  };
}

/** Whatever happens to the api, its operator gets a response or an error that says there is none. */
const ANSWER_SECONDS = 45;

/** For the lab's self-test: what the api says of a node's trouble is changed on the way. */
const falseDashboard: typeof fetch = async (input, init) => {
  const answer = await bounded(input, init);
  if (!/\/v1\/nodes\/[0-9a-f-]{36}$/.test(String(input)) || !answer.ok) return answer;
  const node = (await answer.json()) as { attention: object[] };
  const lie = { hop: "node_runtime_api_reachability", hop_detail: "tls", signal: "nonsense" };
  const attention = node.attention.map((item) => ({ ...item, ...lie }));
  return new Response(JSON.stringify({ ...node, attention }), answer);
};

const bounded: typeof fetch = async (input, init) => {
  const signal = AbortSignal.timeout(ANSWER_SECONDS * 1000);
  try {
    return await fetch(input, { ...init, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`the api did not answer ${init?.method} ${input} within ${ANSWER_SECONDS} s`);
  }
};
