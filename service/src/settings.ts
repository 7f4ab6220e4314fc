// Settings that every listening process has under its own name: its address, and how people
// reach it. Listening beyond loopback in clear text is refused: sessions and tokens would be
// readable on the network.

import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { integer, kinds, oneOf, optional, setting, UsageError } from "@holdfast/kit/settings";

export const exposureSettings = {
  publicUrl: optional(kinds.httpUrl, {
    env: "HOLDFAST_PUBLIC_URL",
    help: "The URL that people use in their browser. Requests with any other Host are rejected, except loopback and the address listened on.",
  }),
  tlsCertFile: optional(kinds.path, {
    env: "HOLDFAST_TLS_CERT_FILE",
    help: "Certificate chain (PEM) for the public listeners. Setting it enables HTTPS.",
  }),
  tlsKeyFile: optional(kinds.path, {
    env: "HOLDFAST_TLS_KEY_FILE",
    help: "Private key (PEM) of HOLDFAST_TLS_CERT_FILE.",
  }),
  trustedProxies: optional(kinds.addressList, {
    env: "HOLDFAST_TRUSTED_PROXIES",
    help: "Addresses of the reverse proxies that terminate TLS. Only their X-Forwarded-For and X-Forwarded-Proto headers are trusted.",
  }),
};

export type Exposure = {
  bind: string;
  publicUrl: string | undefined;
  tlsCertFile: string | undefined;
  tlsKeyFile: string | undefined;
  trustedProxies: string[] | undefined;
};

/** For a listener with its own names and TLS: the settings of the public listeners do not apply. */
export function bareExposure(bind: string): Exposure {
  return { bind, publicUrl: undefined, tlsCertFile: undefined, tlsKeyFile: undefined, trustedProxies: undefined };
}

const logLevel = oneOf("fatal", "error", "warn", "info", "debug", "trace");

export const bindAddress = {
  allowed: "an IP address, or localhost",
  parse: (text: string) => (text === "localhost" || isIP(text) ? text : undefined),
};

/** Rules about combinations of settings. `bindSetting` is the setting's name for the message. */
export function checkExposure(exposure: Exposure, bindSetting: string): void {
  if ((exposure.tlsCertFile === undefined) !== (exposure.tlsKeyFile === undefined)) {
    throw new UsageError("Set HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE together, or neither.");
  }
  if (isLoopback(exposure.bind)) return;
  if (!exposure.tlsCertFile && !exposure.trustedProxies) {
    throw new UsageError(
      `${bindSetting} is ${exposure.bind}, which other machines can reach, but the listener would use clear text. ` +
        "Set HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE, or the address of the proxy that terminates TLS in " +
        "HOLDFAST_TRUSTED_PROXIES, or bind to 127.0.0.1.",
    );
  }
  if (!exposure.publicUrl) {
    throw new UsageError(
      `${bindSetting} is ${exposure.bind}: also set HOLDFAST_PUBLIC_URL to the address people use, ` +
        "because requests for any other Host are rejected.",
    );
  }
}

export function readTls(exposure: Exposure): { cert: Buffer; key: Buffer } | undefined {
  if (!exposure.tlsCertFile || !exposure.tlsKeyFile) return undefined;
  const pair = {
    cert: readPem("HOLDFAST_TLS_CERT_FILE", exposure.tlsCertFile),
    key: readPem("HOLDFAST_TLS_KEY_FILE", exposure.tlsKeyFile),
  };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new UsageError(
      "HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE must contain a certificate chain and its private key, both PEM; " +
        `${exposure.tlsCertFile} and ${exposure.tlsKeyFile} do not: ${(error as Error).message}`,
    );
  }
  return pair;
}

export function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^(::ffff:)?127\./.test(address);
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`${name} is ${path}, which cannot be read: ${(error as Error).message}`);
  }
}

export const logLevelSetting = (env: `HOLDFAST_${string}`, aliases: readonly string[] = []) =>
  setting(logLevel, { env, aliases, default: "info", help: "Log level of this process." });

const sharedSecret = {
  allowed: "32 to 200 printable ASCII characters without spaces, as from `openssl rand -hex 32`",
  parse: (text: string) => (/^[\x21-\x7e]{32,200}$/.test(text) ? text : undefined),
};

/** Shared by all processes of an installation, which authenticate to each other with it. */
export const serviceTokenSetting = optional(sharedSecret, {
  env: "HOLDFAST_SERVICE_TOKEN",
  secret: true,
  help: "Secret with which the api and its gateways authenticate to each other: the same random text for all of them. Without it there are no terminals.",
});

/** What existing callers have may be shorter than what we make. */
const dispatchSecret = {
  allowed: "16 to 200 printable ASCII characters without spaces, as from `openssl rand -hex 32`",
  parse: (text: string) => (/^[\x21-\x7e]{16,200}$/.test(text) ? text : undefined),
};

/** Never the service token: whoever dispatches steps must not be able to act as a gateway (ADR 8, ADR 46). */
export const dispatchTokenSetting = optional(dispatchSecret, {
  env: "HOLDFAST_DISPATCH_TOKEN",
  aliases: ["GATEWAY_SERVICE_TOKEN"],
  secret: true,
  help: "Secret with which workers dispatch steps at the gateway's internal listener: the same random text for gateway and workers, different from HOLDFAST_SERVICE_TOKEN. Without it the gateway has no internal listener.",
});

export const gatewayHttpUrlSetting = optional(kinds.httpUrl, {
  env: "HOLDFAST_GATEWAY_HTTP_URL",
  aliases: ["GATEWAY_HTTP_URL"],
  help: "URL of the gateway's internal listener, as seen from workers. Default: the address that it listens on. http:// only while that is a loopback address.",
});

/** Separate from the gateways' token: whoever has it can state which node a request is from. */
export const ingressTokenSetting = optional(sharedSecret, {
  env: "HOLDFAST_INGRESS_TOKEN",
  secret: true,
  help: "Secret with which the api and `holdfast ingress` authenticate to each other: the same random text for both, different from HOLDFAST_SERVICE_TOKEN. Changing it ends all ingress certificates. Without it no proxy is trusted.",
});

/** For how long an agent that runs steps may be silent: the gateway closes its connection, and the api counts it as offline. */
export const agentStaleSetting = setting(
  {
    // Agents ping every 15 s, and a ping takes some time.
    allowed: "a whole number of milliseconds from 20000 to 3600000; agents ping every 15000",
    parse: integer({ min: 20_000, max: 3_600_000 }).parse,
  },
  {
    env: "HOLDFAST_AGENT_STALE_MS",
    aliases: ["GATEWAY_AGENT_STALE_MS"],
    default: 60_000,
    help: "Number of milliseconds after which a silent agent that runs steps is disconnected. In the list of agents it is offline after that time, but after 30 s at the earliest and 5 minutes at the latest.",
  },
);

/** Where agents reach the gateway. Read by the gateway, which announces it, and by the api for when no gateway did. */
export const executionWsUrlSetting = optional(
  {
    allowed: "a ws:// or wss:// URL with its path, such as wss://holdfast.example.com/ws",
    parse: (text: string) =>
      /^wss?:\/\/[^\s/?#]+\/[^\s?#]*$/.test(text) && URL.canParse(text) ? text : undefined,
  },
  {
    env: "HOLDFAST_EXECUTION_WS_URL",
    aliases: ["GATEWAY_WS_URL"],
    help: "The URL at which agents that run steps connect, as paired agents get it. By default that of the gateway's public listener.",
  },
);

export const drainSetting = setting(integer({ min: 0, max: 600 }), {
  env: "HOLDFAST_DRAIN_SECONDS",
  default: 0,
  help: "On shutdown: how long /readyz reports it while requests are still served, and then how long open connections are served. Behind a load balancer, set it longer than the time for which that keeps unused connections.",
});

/** Read by every server process: its log lines, to be found by the ids in them. */
export const logStoreSettings = {
  logStoreDir: optional(kinds.path, {
    env: "HOLDFAST_LOG_STORE_DIR",
    help: "Directory in which the process keeps its last log lines, so that `holdfast logs`, traces and evidence bundles find them. Processes may share it. `holdfast up` sets it to logs/store in its data directory. Without it, no lines are kept.",
  }),
  logStoreMib: setting(integer({ min: 1, max: 10_240 }), {
    env: "HOLDFAST_LOG_STORE_MIB",
    default: 64,
    help: "Size in MiB to which the kept log lines of one process are limited. The oldest are removed first.",
  }),
  logStoreDays: setting(integer({ min: 1, max: 365 }), {
    env: "HOLDFAST_LOG_STORE_DAYS",
    default: 7,
    help: "Days for which a process keeps its log lines.",
  }),
};
