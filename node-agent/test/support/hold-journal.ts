// An agent's journal in a process of its own: starts a task that is not idempotent, says so, and
// stays until it is killed. Run with the state directory as argument.

import { openJournal } from "../../src/journal/journal.ts";

const journal = openJournal(process.argv[2] ?? "", { sizeBytes: 64 * 1024 });
journal.claimed({
  task_id: "01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
  generation: 3,
  type: "allocation.provision_user",
  expires_at: "2100-01-01T00:00:00.000Z",
  idempotent: false,
  resultBytes: 1024,
});
await journal.started("01a1e13c-bc3d-71c5-9b58-aada3c2346d4");
process.stdout.write("started\n");
setInterval(() => {}, 60_000);
