// What the driver needs to know from a database's URL. A percent-encoded path in the place of the host is the directory of
// a Unix socket, `postgres://user:password@%2Frun%2Fholdfast/db`, as libpq and psql understand it too.

import { readFileSync } from "node:fs";
import type { ClientConfig } from "pg";

type Address = Pick<ClientConfig, "host" | "port" | "user" | "password" | "database" | "ssl" | "options">;

/** `parameters` hold for every session, such as search_path. */
export function clientAddress(url: string, parameters: Record<string, string | number>): Address {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const database = decodeURIComponent(pathname.slice(1));
  const options = [searchParams.get("options") ?? "", ...Object.entries(parameters).map(sessionOption)];
  return {
    host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, "$1"),
    port: Number(port || 5432),
    ...(username ? { user: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(database ? { database } : {}),
    ssl: tlsOptions(searchParams),
    options: options.filter(Boolean).join(" "),
  };
}

/** As libpq reads sslmode, except that `prefer` and `allow` do not go on without TLS where they are set. */
function tlsOptions(parameters: URLSearchParams): ClientConfig["ssl"] {
  const mode = parameters.get("sslmode") ?? parameters.get("ssl") ?? "disable";
  const root = parameters.get("sslrootcert");
  const ca = root && root !== "system" ? { ca: readFileSync(root, "utf8") } : {};
  if (mode === "verify-full" || root === "system") return { ...ca };
  if (mode === "verify-ca") return { ...ca, checkServerIdentity: () => undefined };
  return ["disable", "false", "0"].includes(mode) ? false : { rejectUnauthorized: false };
}

function sessionOption([name, value]: [string, string | number]): string {
  return `-c ${name}=${String(value).replace(/[\\\s]/g, "\\$&")}`;
}
