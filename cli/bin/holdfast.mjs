#!/usr/bin/env node
// Entry of the `holdfast` command. Plain JavaScript, because it may be started by an older Node.js
// than the one the project brings along: then it starts itself again with that one.

import module from "node:module";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

if (Number(process.versions.node.split(".")[0]) >= 24) {
  // Halves the start-up of a command. The directory belongs to whoever installed the project.
  module.enableCompileCache(fileURLToPath(new URL("node_modules/.cache/holdfast", root)));
  const args = process.argv.slice(2);
  if (args.join(" ") === "agent run") {
    // Stays in memory on every host: it comes without what reads the other commands.
    const { runAgent } = await import("../src/commands/agent/run.ts");
    await runAgent();
  } else {
    const { main } = await import("../src/main.ts");
    await main(args);
  }
} else {
  const [{ spawn }, { existsSync }] = await Promise.all([import("node:child_process"), import("node:fs")]);
  const node = fileURLToPath(new URL("node_modules/.bin/node", root));
  if (!existsSync(node)) {
    process.stderr.write(
      `holdfast needs Node.js 24, this is ${process.versions.node}. Run \`npm start\` once: it installs one.\n`,
    );
    process.exit(2);
  }
  const child = spawn(node, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
}
