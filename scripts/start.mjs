// npm start: prepares the checkout, then hands over to `holdfast up`, with any arguments.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { node, prepare, root } from "./prepare.mjs";

try {
  await prepare();
} catch (error) {
  process.stderr.write(`\nerror: ${error.message}\n`);
  process.exit(1);
}

const up = spawn(node, [join(root, "cli/bin/holdfast.mjs"), "up", ...process.argv.slice(2)], { stdio: "inherit" });
// Ctrl-C reaches the whole foreground group by itself; the others are passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => up.kill(signal));
up.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
