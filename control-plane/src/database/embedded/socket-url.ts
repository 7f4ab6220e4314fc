// Addresses of a PostgreSQL behind a Unix socket. The socket's directory stands percent-encoded in
// the place of the host, `postgres://user:password@%2Frun%2Fholdfast/db`, which is the form that
// libpq and psql understand too.

export type SocketAddress = { user: string; password: string; directory: string; database: string };

export function socketUrl(address: SocketAddress): string {
  const { user, password, directory, database } = address;
  return `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(directory)}/${database}`;
}
