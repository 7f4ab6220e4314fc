// The control host of a lab: an api as `holdfast api` runs it, and the operator at the desk who asks it.

import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@holdfast/contracts/client";
import { type Logins, loginEnvironment } from "@holdfast/control-plane/database/settings";
import { API_NAME, API_PORT, type Network } from "./network.ts";
import { type RunningProgram, start } from "./program.ts";

export const holdfast = fileURLToPath(new URL("../../../cli/bin/holdfast.mjs", import.meta.url));

export type Control = {
  /** As an administrator of the installation. */
  operator: Client;
  api(): RunningProgram;
  /** What an ingress gets its certificates by. */
  ingressToken: string;
  /** Again, or after it was killed. */
  startApi(): Promise<void>;
};

export async function openControl(options: {
  network: Network;
  directory: string;
  logins: Logins;
  staleAfterSeconds: number;
}): Promise<Control> {
  const { network, directory } = options;
  const { desk, host } = network.control;
  const operatorToken = `hfo_${randomBytes(32).toString("base64url")}`;
  const ingressToken = randomBytes(32).toString("base64url");
  const baseUrl = `http://${desk}:3001`;
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
    HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS: String(options.staleAfterSeconds),
    HOLDFAST_API_LOG_LEVEL: "trace",
    HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "0",
  };
  const launch = () =>
    start({
      host,
      name: "api",
      command: [process.execPath, holdfast, "api"],
      env,
      logFile: join(directory, "api.log"),
    });
  let api = launch();
  await api.ready;
  return {
    operator: createClient({ baseUrl, token: operatorToken, fetch: bounded }),
    api: () => api,
    ingressToken,
    async startApi() {
      await api.stop("SIGKILL");
      api = launch();
      await api.ready;
    },
  };
}

/** Whatever happens to the api, its operator is answered or told that there is no answer. */
const ANSWER_SECONDS = 45;

const bounded: typeof fetch = async (input, init) => {
  const signal = AbortSignal.timeout(ANSWER_SECONDS * 1000);
  try {
    return await fetch(input, { ...init, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`the api did not answer ${init?.method} ${input} within ${ANSWER_SECONDS} s`);
  }
};
