// Started as a process of its own: an agent that runs steps and dies by SIGKILL at one point of its work with the journal, as in
// a crash. Prints each point that it reaches. Argument: a JSON text.

import { join } from "node:path";
import { hostDriver } from "../../src/drivers/sandbox/host.ts";
import { startExecutionAgent } from "../../src/execution/agent.ts";
import type { Credentials } from "../../src/execution/credentials.ts";
import type { ExecutionJournal, ExecutionReport } from "../../src/execution/deliveries.ts";
import { openPinnedKeys } from "../../src/execution/key-set.ts";
import type { KeySet } from "../../src/identity/accept-trust.ts";
import { openJournal } from "../../src/journal/journal.ts";
import { createLog } from "../../src/log.ts";
import { sandboxWith } from "./host-backend.ts";

const { credentials, directory, dieAt } = JSON.parse(process.argv[2] ?? "") as {
  credentials: Credentials;
  directory: string;
  dieAt: string | undefined;
};

const pass = (point: string) => {
  process.stdout.write(`${point}\n`);
  if (point === dieAt) process.kill(process.pid, "SIGKILL");
};

const around =
  <Args extends unknown[], Result>(name: string, work: (...args: Args) => Result) =>
  (...args: Args): Result => {
    pass(`before ${name}`);
    const result = work(...args);
    if (!(result instanceof Promise)) {
      pass(`after ${name}`);
      return result;
    }
    pass(`during ${name}`);
    return result.then((value) => {
      pass(`after ${name}`);
      return value;
    }) as Result;
  };

const real = openJournal<ExecutionReport>(directory, { sizeBytes: 4 * 1024 * 1024 });
const journal: ExecutionJournal = {
  ...real,
  claimed: around("claimed", real.claimed),
  started: around("started", real.started),
  result: around("result", real.result),
  settled: around("settled", real.settled),
};
const log = createLog({ write: (line) => process.stderr.write(line) });
const driver = hostDriver({ root: join(directory, "workdir") });
await driver.recover();
startExecutionAgent({
  ...{ credentials, agentVersion: "1.0.0", journal, log, random: () => 0 },
  keys: openPinnedKeys({ file: undefined, paired: credentials.keySet as KeySet, log }),
  sandbox: sandboxWith(driver),
});
