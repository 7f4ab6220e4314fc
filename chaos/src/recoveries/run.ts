// npm run chaos -- recoveries [<name>…] [--json]: from a fault to a green checklist, under one incident. Exit code 1 when one
// does not get there.

import { parseArgs } from "node:util";
import { facilities } from "../../../scripts/facilities.mjs";
import { runInside } from "../enter.ts";
import { allRecoveries } from "./all.ts";

const usage = "npm run chaos -- recoveries [list | <name>…] [--json]";

/** Returns the exit code. */
export async function runRecoveries(args: string[]): Promise<number> {
  const asked = readArguments(args);
  if (typeof asked === "string") return stop(asked);
  if (asked.list) {
    const lines = allRecoveries.map(({ name, title }) => `${name.padEnd(24)}${title}`);
    process.stdout.write(`${lines.join("\n")}\n`);
    return 0;
  }
  const needed = ["root", "nft", "dnsmasq", "faketime", "nginx", "postgresql"] as const;
  const missing = needed.filter((name) => !facilities[name].present());
  if (missing.length > 0) {
    return stop(
      `The lab needs ${missing.join(", ")}: ${missing.map((one) => facilities[one].remedy).join("; ")}.`,
    );
  }
  const inside = new URL("./inside.ts", import.meta.url);
  return runInside(inside, [asked.names.join(","), asked.json ? "json" : "table"]);
}

/** Or what is wrong with them. */
function readArguments(args: string[]): { list: boolean; names: string[]; json: boolean } | string {
  try {
    const options = { json: { type: "boolean", default: false } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    const known = allRecoveries.map(({ name }) => name);
    const list = positionals[0] === "list" && positionals.length === 1;
    const names = list || positionals.length === 0 ? known : [...new Set(positionals)];
    const unknown = names.filter((name) => !known.includes(name));
    if (unknown.length > 0) return `There is no recovery ${unknown.join(", ")}; there are: ${known.join(", ")}.`;
    return { list, names, json: values.json };
  } catch (error) {
    return `${(error as Error).message}\n${usage}`;
  }
}

function stop(message: string): number {
  process.stderr.write(`${message}\n`);
  return 2;
}
