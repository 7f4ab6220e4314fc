// Addresses of a PostgreSQL behind a Unix socket. The socket's directory stands percent-encoded in
// the place of the host, `postgres://user:password@%2Frun%2Fholdfast/db`, which is the form that
// libpq and psql understand too. postgres.js does not decode it: open every URL with
// `postgres(url, { ...socketOptions(url), … })`.

export type SocketAddress = { user: string; password: string; directory: string; database: string };

export function socketUrl(address: SocketAddress): string {
  const { user, password, directory, database } = address;
  return `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(directory)}/${database}`;
}

/** What postgres.js must be told besides the URL: nothing for TCP, the directory for a socket. */
export function socketOptions(url: string): { host?: string } {
  const host = decodeURIComponent(new URL(url).hostname);
  return host.startsWith("/") ? { host } : {};
}
