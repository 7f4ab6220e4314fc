// Starts launch-and-die.ts, and resolves with what it ended by.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const dying = fileURLToPath(new URL("./launch-and-die.ts", import.meta.url));

export function launchAndDie(argument: object): Promise<NodeJS.Signals | null> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [dying, JSON.stringify(argument)], { stdio: "inherit" });
    child.once("exit", (_code, signal) => resolve(signal));
  });
}
