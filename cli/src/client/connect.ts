// Finds the server that a command connects to: the one in the environment, else the one signed in
// to, else the one that `holdfast up` runs on this machine, whose token file replaces a sign-in.

import { type Client, createClient } from "@holdfast/contracts/client";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { readFileIfPresent } from "@holdfast/kit/files";
import { type Environment, readSettings, UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { UnreachableError } from "../failure.ts";
import { asItsUser, pathsIn } from "../up/data-directory.ts";
import { dataDirectorySetting } from "../up/data-directory-setting.ts";
import { livingSupervisor, readUpFile } from "../up/up-file.ts";
import { type Credentials, loadCredentials } from "./credentials.ts";
import { chooseOrganization } from "./organization.ts";
import { pinnedFetch } from "./pinned-fetch.ts";
import { clientSettings } from "./settings.ts";

export type ServerOptions = { org?: string; local?: boolean; json?: boolean };

export type Server = {
  url: string;
  token: string;
  orgId?: string;
  /** The TLS certificate of the installation on this machine. */
  certificateFile?: string;
  /** The gateway of the installation on this machine: its public name may not resolve here. */
  gatewayUrl?: string;
};

/** The options of every command that connects to a server. */
export function withServerOptions(command: Command): Command {
  return command
    .option("--org <slug or id>", "the organization to act in")
    .option("--local", "use the server on this machine, even when signed in to another")
    .option("--json", "print JSON");
}

export function findServer(options: ServerOptions, env: Environment = process.env): Server {
  const settings = readSettings(clientSettings, env);
  if (settings.apiUrl && !options.local) {
    if (!settings.token)
      throw new UsageError(
        "HOLDFAST_API_URL is set, but HOLDFAST_TOKEN is not. Set it to an API token of that server.",
      );
    return { url: settings.apiUrl, token: settings.token };
  }
  if (settings.token && !options.local) return { ...findLocalServer(env), token: settings.token };
  const saved = options.local ? undefined : loadCredentials(env);
  if (saved) return savedServer(saved);
  return findLocalServer(env);
}

export function savedServer(saved: Credentials): Server {
  return {
    url: saved.api_url,
    token: saved.token,
    orgId: saved.org_id,
    certificateFile: saved.certificate_file,
  };
}

export function findLocalServer(env: Environment = process.env): Server {
  const { dataDir } = readSettings({ dataDir: dataDirectorySetting }, env);
  const paths = pathsIn(dataDir);
  const { file, token } = asItsUser(dataDir, () => ({
    file: readUpFile(paths.upFile),
    token: readFileIfPresent(paths.operatorToken)?.trim(),
  }));
  // After a kill -9 another process may own the port; it must not get the token.
  if (!file?.api_url || !token || !livingSupervisor(file)) {
    throw new UnreachableError(
      `No Holdfast server is running on ${dataDir}. Start it with \`npm start\`, sign in to another server with \`holdfast login\`, ` +
        "or set HOLDFAST_DATA_DIR to its data directory.",
    );
  }
  return {
    url: file.api_url,
    token,
    certificateFile: file.tls_cert_file ?? undefined,
    gatewayUrl: file.gateway_url ?? undefined,
  };
}

/** Platform commands use the machine's operator token or the one in the environment, never a person's sign-in. */
export function findServerToAdminister(): Server {
  return process.env["HOLDFAST_API_URL"] ? findServer({}) : findLocalServer();
}

export function clientOf(server: Server): Client {
  return createClient({
    baseUrl: server.url,
    token: server.token,
    orgId: server.orgId,
    fetch: reachable(server.url, server.certificateFile),
  });
}

/** A client that acts in the organization named by the person, or in the only one. */
export async function connect(options: ServerOptions, env: Environment = process.env): Promise<Client> {
  return clientOf(await findServerAndOrg(options, env));
}

export async function findServerAndOrg(options: ServerOptions, env: Environment = process.env): Promise<Server> {
  const server = findServer(options, env);
  const wanted = options.org ?? readSettings(clientSettings, env).org;
  const client = clientOf({ ...server, orgId: undefined });
  const chosen = await chooseOrganization(client, await client(getMe, {}), { wanted, signedInTo: server.orgId });
  return { ...server, orgId: chosen?.id };
}

export function reachable(url: string, certificateFile?: string): typeof fetch {
  const send = certificateFile ? pinnedFetch(certificateFile) : fetch;
  return async (input, init) => {
    try {
      return await send(input, { ...init, signal: init?.signal ?? AbortSignal.timeout(30_000) });
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
      const reason = cause?.code ?? cause?.message ?? message;
      throw new UnreachableError(`${url} is unreachable (${reason}). On the server, run \`holdfast status\`.`);
    }
  };
}
