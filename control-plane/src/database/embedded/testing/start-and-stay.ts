// A process of its own that starts the embedded PostgreSQL and stays: for tests that kill it.

import { startEmbeddedPostgres } from "../start.ts";

const directory = process.argv[2];
if (directory === undefined) throw new Error("which directory?");
const server = await startEmbeddedPostgres({ directory });
process.stdout.write(`${server.pid}\n`);
setInterval(() => undefined, 60_000);
