// holdfast login: signs in with email and password and keeps an API token instead of the session,
// so that it shows up in the token list with its last use and can be revoked there.

import { hostname } from "node:os";
import { type Client, createClient } from "@holdfast/contracts/client";
import type { Me } from "@holdfast/contracts/endpoints/me";
import { signIn, signOut } from "@holdfast/contracts/endpoints/sign-in";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { kinds, UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { findLocalServer, reachable, type Server } from "../client/connect.ts";
import { saveCredentials } from "../client/credentials.ts";
import { chooseOrganization } from "../client/organization.ts";
import { printResult } from "../output.ts";
import { ask, readAllInput } from "../prompt.ts";

type LoginOptions = { api?: string; email?: string; org?: string; passwordStdin?: boolean; json?: boolean };

const TOKEN_DAYS = 90;

export function loginCommand(): Command {
  return new Command("login")
    .description("sign in to a Holdfast server for the following commands")
    .option("--api <url>", "the server's URL; default: the server on this machine")
    .option("--email <address>")
    .option("--org <slug or id>", "the organization to act in, if you are a member of several")
    .option("--password-stdin", "read the password from standard input")
    .option("--json", "print JSON")
    .action(login);
}

async function login(options: LoginOptions): Promise<void> {
  const { url, certificateFile } = options.api === undefined ? findLocalServer() : { url: parseUrl(options.api) };
  const email = options.email ?? (await ask("Email", { instead: "--email" }));
  const password = options.passwordStdin
    ? await readAllInput()
    : await ask("Password", { secret: true, instead: "--password-stdin" });

  const { me, org, created } = await signedIn({ url, certificateFile }, { email, password }, async (me, call) => {
    const org = await chooseOrganization(call(), me, { wanted: options.org });
    if (!org)
      throw new UsageError(
        "Your account is not a member of any organization. Ask an administrator to invite you.",
      );
    const role = org.role === "operator" ? "owner" : org.role;
    const name = `CLI on ${hostname()}`.slice(0, 80);
    const created = await call(org.id)(createToken, { body: { name, role, expires_in_days: TOKEN_DAYS } });
    return { me, org, created };
  });
  saveCredentials(process.env, {
    api_url: url,
    token: created.token,
    token_id: created.id,
    org_id: org.id,
    certificate_file: certificateFile,
  });
  printResult(
    options,
    { api_url: url, email: me.email, organization: org.slug, role: org.role, expires_at: created.expires_at },
    () =>
      `Signed in to ${url} as ${me.email}, organization ${org.slug} (${org.role}). Expires in ${TOKEN_DAYS} days.`,
  );
}

/** A session for the length of `work`, ended whatever comes of it. */
async function signedIn<T>(
  { url, certificateFile }: Pick<Server, "url" | "certificateFile">,
  person: { email: string; password: string },
  work: (me: Me, call: (orgId?: string) => Client) => Promise<T>,
): Promise<T> {
  const fetch = withSession(url, certificateFile);
  const call = createClient({ baseUrl: url, fetch });
  const me = await call(signIn, { body: person });
  try {
    return await work(me, (orgId) => createClient({ baseUrl: url, orgId, fetch }));
  } finally {
    await call(signOut, {});
  }
}

/** Keeps the session cookie for the few requests of a sign-in, as the server's own page would. */
function withSession(url: string, certificateFile: string | undefined): typeof fetch {
  const send = reachable(url, certificateFile);
  let cookie: string | undefined;
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("origin", url);
    if (cookie) headers.set("cookie", cookie);
    const response = await send(input, { ...init, headers });
    cookie = response.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return response;
  };
}

function parseUrl(text: string): string {
  const url = kinds.httpUrl.parse(text);
  if (!url) throw new UsageError(`--api is ${JSON.stringify(text)}. Allowed: ${kinds.httpUrl.allowed}.`);
  return url;
}
