// How the embedded server is tuned: a small service that is always on, shares its machine with
// others, and must not lose an acknowledged row. They are passed on the command line, so that a new
// version of Holdfast changes them without editing files of an existing database.

export type ServerParameters = Record<string, string>;

const parameters: ServerParameters = {
  // Nothing listens on the network; the socket lies in a directory that only we can enter.
  listen_addresses: "",
  port: "5432",
  unix_socket_permissions: "0700",
  password_encryption: "scram-sha-256",
  max_connections: "100",
  shared_buffers: "64MB",
  fsync: "on",
  synchronous_commit: "on",
  // No replicas and no archive read this log, so it need only bring this one server back.
  wal_level: "minimal",
  max_wal_senders: "0",
  max_logical_replication_workers: "0",
  max_wal_size: "512MB",
  autovacuum: "on",
  // Our queries are short: compiling one costs more than running it.
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  // A statement in the log could contain its literals.
  log_min_error_statement: "panic",
};

export function serverArguments(options: {
  dataDirectory: string;
  socketDirectory: string;
  extra: ServerParameters;
}): string[] {
  const all = { ...parameters, ...options.extra, unix_socket_directories: quoted(options.socketDirectory) };
  return [
    "-D",
    options.dataDirectory,
    ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
}

/** The server splits this parameter at commas and trims it, unless the path is quoted. */
function quoted(path: string): string {
  return `"${path.replaceAll('"', '""')}"`;
}
