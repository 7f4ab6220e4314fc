// The two database logins of the control plane. Tenant requests use one that can become holdfast_app and nothing else, so
// that SQL injection in a request can reach neither the system role nor the owner, whatever it sets or resets.
//
// From the owner's URL alone, every process derives the same two logins: named after the database, with passwords that
// are HMACs under the owner's password. Nothing is stored, and replicas agree.

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { UsageError, type Values } from "@holdfast/kit/settings";
import { isUnavailable, openOwner, openPool, type RuntimeRole, type Sql, type Tx } from "./connect.ts";
import { migrate } from "./migrate.ts";
import { type Logins, loginSettings } from "./settings.ts";
import { Identifier } from "./sql/template.ts";

const roles: { role: RuntimeRole; login: keyof Logins }[] = [
  { role: "holdfast_app", login: "appUrl" },
  { role: "holdfast_system", login: "systemUrl" },
];

/** The logins from the settings; undefined if they are to be derived. */
export function configuredLogins(settings: Values<typeof loginSettings>): Logins | undefined {
  const { appDatabaseUrl: appUrl, systemDatabaseUrl: systemUrl } = settings;
  if (appUrl && systemUrl) return { appUrl, systemUrl };
  if (appUrl || systemUrl) {
    const { appDatabaseUrl, systemDatabaseUrl } = loginSettings;
    throw new UsageError(`Set ${appDatabaseUrl.env} and ${systemDatabaseUrl.env} together.`);
  }
  return undefined;
}

export function deriveLogins(ownerUrl: string): Logins {
  const { username, password, pathname } = new URL(ownerUrl);
  if (password === "") {
    throw new UsageError(
      "HOLDFAST_DATABASE_URL holds no password, and the logins of api and worker are derived from it. " +
        `Add the password, or set ${loginSettings.appDatabaseUrl.env} and ${loginSettings.systemDatabaseUrl.env}.`,
    );
  }
  const database = decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username);
  const suffix = /^[a-z0-9_]{1,40}$/.test(database)
    ? database
    : createHash("sha256").update(database).digest("hex").slice(0, 16);
  const urlFor = (role: RuntimeRole) => {
    const url = new URL(ownerUrl);
    url.username = `${role}_${suffix}`;
    url.password = createHmac("sha256", decodeURIComponent(password)).update(url.username).digest("base64url");
    return url.href;
  };
  return { appUrl: urlFor("holdfast_app"), systemUrl: urlFor("holdfast_system") };
}

/** Brings the schema up to date and makes sure that both logins work. */
export async function setUpDatabase(options: {
  ownerUrl: string;
  /** Created if they do not exist; derived by default. */
  logins?: Logins;
}): Promise<{ applied: string[]; logins: Logins }> {
  const { applied } = await migrate({ url: options.ownerUrl });
  const logins = options.logins ?? deriveLogins(options.ownerUrl);
  const refused = await refusedLogins(logins);
  if (refused.length > 0) {
    // Nobody else knows a derived password, so it may be set again: the owner's has changed.
    await makeLogins(options.ownerUrl, refused, { resetPasswords: options.logins === undefined });
    const [still] = await refusedLogins(logins);
    if (still) {
      throw new UsageError(
        `PostgreSQL does not accept the login ${still.user}: ${still.reason}. Check its password and pg_hba.conf.`,
      );
    }
  }
  return { applied, logins };
}

/** Throws when SQL on a tenant's connection could become the system role, the owner, or anybody as powerful. */
export async function checkAppLogin(app: Sql): Promise<void> {
  const rows = await app<{ login: string; role: string }[]>`
    SELECT session_user AS login, r.rolname AS role FROM pg_roles r
    WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND (
      r.rolsuper OR r.rolcreaterole OR r.rolbypassrls OR r.rolname = 'holdfast_system'
      OR r.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
        'pg_execute_server_program')
      OR r.oid IN (
        SELECT datdba FROM pg_database WHERE datname = current_database()
        UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'holdfast'
        UNION SELECT relowner FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace))
    ORDER BY r.rolname <> 'holdfast_system', r.rolname LIMIT 5`;
  const [first] = rows;
  if (!first) return;
  throw new UsageError(
    `The database login ${first.login}, which serves tenants' requests, can become ${rows.map(({ role }) => role).join(", ")}. ` +
      `Set ${loginSettings.appDatabaseUrl.env} to a login that is a member of holdfast_app only.`,
  );
}

type Refused = { role: RuntimeRole; url: string; user: string; reason: string };

async function refusedLogins(logins: Logins): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const { role, login } of roles) {
    const url = logins[login];
    const sql = openPool({ url, role, application: "holdfast-migrate", max: 1 });
    try {
      await sql`SELECT`;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      refused.push({ role, url, user: userOf(url), reason: (error as Error).message });
    } finally {
      await sql.end();
    }
  }
  return refused;
}

/** Any constant, as long as nothing else in the database uses it. */
const LOCK = 4_017_266_302;

async function makeLogins(
  ownerUrl: string,
  refused: readonly Refused[],
  how: { resetPasswords: boolean },
): Promise<void> {
  const owner = openOwner(ownerUrl);
  try {
    await owner.begin(async (tx) => {
      // Replicas start together.
      await tx`SELECT pg_advisory_xact_lock(${LOCK})`;
      for (const login of refused) await makeLogin(tx, login, how);
    });
  } catch (error) {
    if ((error as { code?: string }).code !== "42501") throw error;
    const user = new Identifier(userOf(ownerUrl)).text;
    throw new UsageError(
      `${user} may not set up the database logins of api and worker: ${(error as Error).message}. As a superuser run: ` +
        `ALTER ROLE ${user} CREATEROLE; GRANT holdfast_app, holdfast_system TO ${user} WITH ADMIN OPTION`,
    );
  } finally {
    await owner.end();
  }
}

async function makeLogin(tx: Tx, login: Refused, { resetPasswords }: { resetPasswords: boolean }): Promise<void> {
  const user = new Identifier(login.user).text;
  const secret = `PASSWORD '${scramVerifier(decodeURIComponent(new URL(login.url).password))}'`;
  const [known] = await tx`SELECT FROM pg_roles WHERE rolname = ${login.user}`;
  if (!known) await tx.unsafe(`CREATE ROLE ${user} LOGIN NOINHERIT ${secret}`);
  else if (resetPasswords) await tx.unsafe(`ALTER ROLE ${user} LOGIN ${secret}`);
  const [granted] = await tx`
    SELECT pg_has_role(${login.user}, ${login.role}, 'MEMBER') AS role,
      has_database_privilege(${login.user}, current_database(), 'CONNECT') AS connect`;
  if (!granted?.["role"]) await tx.unsafe(`GRANT ${login.role} TO ${user}`);
  if (granted?.["connect"]) return;
  const [database] = await tx`SELECT current_database() AS name`;
  await tx`GRANT CONNECT ON DATABASE ${tx(String(database?.["name"]))} TO ${tx(login.user)}`;
}

const userOf = (url: string) => decodeURIComponent(new URL(url).username);

/** As PostgreSQL stores a password: the password itself is never in a statement, which the server may log. */
function scramVerifier(password: string): string {
  const [iterations, salt] = [4096, randomBytes(16)];
  const salted = pbkdf2Sync(password.normalize("NFKC"), salt, iterations, 32, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const serverKey = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}
