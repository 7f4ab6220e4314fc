// A process that rewraps in small batches and is killed by its test: it prints a line within each batch and one after it. Arguments: the
// database, the two KEKs as `id=base64`, and the size of a batch.

import { openPool } from "../../src/database/connect.ts";
import type { Kek } from "../../src/mechanisms/sealing/keks.ts";
import { rewrapSome } from "../../src/secrets/kek/rewrap.ts";

const [url = "", current = "", previous = "", limit = "1"] = process.argv.slice(2);
const system = openPool({ url, role: "holdfast_system", application: "test-rewrap", max: 1 });
for (;;) {
  const rewrapped = await system.begin(async (tx) => {
    const count = await rewrapSome(tx, { current: kekOf(current), previous: kekOf(previous) }, Number(limit));
    await printed("within");
    return count;
  });
  await printed("after");
  if (rewrapped === 0) break;
}
await system.end({ timeout: 1 });

function kekOf(text: string): Kek {
  const at = text.indexOf("=");
  return { id: text.slice(0, at), key: Buffer.from(text.slice(at + 1), "base64") };
}

/** Waits for a line of the test, which kills instead of writing one when it is time. */
async function printed(line: string): Promise<void> {
  process.stdout.write(`${line}\n`);
  await new Promise((resolve) => process.stdin.once("data", resolve));
}
