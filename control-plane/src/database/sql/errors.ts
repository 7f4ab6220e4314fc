// Errors of the connection to PostgreSQL, apart from those that PostgreSQL reports itself (a DatabaseError with an SQLSTATE).

import { DatabaseError } from "pg";

/** The connection could not be opened, or was lost. Whether a statement under way was carried out is unknown. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
  /** The system's, such as ECONNREFUSED, or one of CONNECT_TIMEOUT, CONNECTION_CLOSED, CONNECTION_ENDED. */
  readonly code: string;
  constructor(code: string, cause?: unknown) {
    const said = (cause as Error | undefined)?.message;
    super(said ? `${code}: ${said}` : code, cause === undefined ? {} : { cause });
    this.code = code;
  }
}

/** What the driver throws without an SQLSTATE is about the connection. */
export function connectionError(error: unknown): DatabaseError | ConnectionError {
  if (error instanceof DatabaseError || error instanceof ConnectionError) return error;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === "string") return new ConnectionError(code, error);
  return new ConnectionError(message === "timeout expired" ? "CONNECT_TIMEOUT" : "CONNECTION_CLOSED", error);
}

/** The server ends the connection after this error. */
export function endsConnection(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return error instanceof ConnectionError;
  return error.severity === "FATAL" || /^(08|57P)/.test(error.code ?? "");
}

/** A change of the schema made a prepared statement useless ("cached plan must not change result type"). */
export function isStalePlan(error: unknown): boolean {
  return error instanceof DatabaseError && error.routine === "RevalidateCachedQuery";
}

/** The database is unavailable or restarting, or requests a retry, as opposed to having refused the statement. */
export function isUnavailable(error: unknown): boolean {
  if (isStalePlan(error)) return true;
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string") return false;
  return unavailableCodes.has(code) || code.startsWith("08") || code.startsWith("57P");
}

const unavailableCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EPIPE",
  "ETIMEDOUT",
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  // Too many connections; not accepting connections at present.
  "53300",
  "55000",
  // Aborted by the server, and retryable: time limit, deadlock, serialization.
  "57014",
  "40P01",
  "40001",
]);
