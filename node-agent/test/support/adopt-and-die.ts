// Started as a process of its own: offers and adopts everything at once, and is killed before a given replacement or
// removal of a file. Arguments: state directory, file with the offer, number of the step (0: none).

import fs, { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { Way } from "../../src/identity/trials.ts";

const [stateDir = "", offerFile = "", deadlyStep = "0"] = process.argv.slice(2);
const { renameSync, unlinkSync } = fs;
let step = 0;
const mayDie = () => {
  step += 1;
  if (step === Number(deadlyStep)) process.kill(process.pid, "SIGKILL");
};
fs.renameSync = (from, to) => {
  mayDie();
  renameSync(from, to);
};
fs.unlinkSync = (path) => {
  mayDie();
  unlinkSync(path);
};
syncBuiltinESMExports();

const { openSession } = await import("../../src/link/session.ts");
const { stateFiles } = await import("../../src/identity/state-directory.ts");
const { apiUrl, ...candidates } = JSON.parse(readFileSync(offerFile, "utf8")) as Way;
const session = openSession({
  files: stateFiles(stateDir),
  apiUrl: undefined,
  instanceId: crypto.randomUUID(),
  bootId: "b",
});
session.offer(candidates);
session.adopt({ ...candidates, apiUrl });
process.stdout.write(`${step}\n`);
