// Asks a person at the terminal. A secret is not echoed; without a terminal it fails.

import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { UsageError } from "@holdfast/kit/settings";

export async function ask(question: string, options: { secret?: boolean; instead: string }): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError(`Cannot ask: standard input is not a terminal. Use ${options.instead}.`);
  let muted = false;
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!muted) process.stderr.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  try {
    const answer = lines.question(`${question}: `);
    muted = options.secret === true;
    return options.secret ? await answer : (await answer).trim();
  } finally {
    lines.close();
    if (options.secret) process.stderr.write("\n");
  }
}

export async function agreed(question: string, instead = "--yes"): Promise<boolean> {
  const answer = await ask(`${question} Type yes to confirm`, { instead });
  return /^y(es)?$/i.test(answer);
}

export async function readAllInput(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
  return text.replace(/\r?\n$/, "");
}
