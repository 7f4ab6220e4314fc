// A process that dies by SIGKILL while it sends a script to the host's driver, as an agent that crashes. Started by tests with a
// JSON text as its only argument.

import { hostDriver } from "../../src/drivers/sandbox/host.ts";
import { roomy } from "../drivers/sandbox/bench.ts";

const { root, id, script } = JSON.parse(process.argv[2] ?? "") as { root: string; id: string; script: string };
// More than pipes hold.
const long = `${script}\n${"# more of it\n".repeat(200_000)}`;
hostDriver({ root }).run({
  ...{ id, shell: "sh", script: long, env: {}, network: true, image: "", limits: roomy },
  onOutput: () => undefined,
});
process.kill(process.pid, "SIGKILL");
