// An external PostgreSQL, at HOLDFAST_DATABASE_URL. Connected to once at the start, so
// that a wrong address is reported here and not by three processes in their logs.

import { isUnavailable, openOwner } from "@holdfast/control-plane/database/connect";
import { redact } from "@holdfast/kit/redact";
import { UsageError } from "@holdfast/kit/settings";

/** Its version, such as `15.14`. */
export async function askExternalDatabase(url: string): Promise<string> {
  const sql = openOwner(url);
  try {
    const [server] = await sql<{ version: string }[]>`
      SELECT split_part(current_setting('server_version'), ' ', 1) AS version`;
    return server?.version ?? "unknown";
  } catch (error) {
    const message = redact((error as Error).message || String(error));
    const where = new URL(url).host;
    if (isUnavailable(error))
      throw new Error(`PostgreSQL at ${where} (HOLDFAST_DATABASE_URL) is unreachable: ${message}`);
    throw new UsageError(`PostgreSQL at ${where} (HOLDFAST_DATABASE_URL) refused the connection: ${message}`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
