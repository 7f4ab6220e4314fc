// What an edge knows a browser by. From a file or the environment: what is in a command line is shown to every user of the
// machine.

import { readFileSync } from "node:fs";
import { UsageError } from "@holdfast/kit/settings";
import type { Options } from "./options.ts";

export function edgeHeaders(
  { edgeCookieFile, edgeHeaderFile }: Pick<Options, "edgeCookieFile" | "edgeHeaderFile">,
  env: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const cookie = read(edgeCookieFile) ?? env["HOLDFAST_EDGE_COOKIE"];
  const lines = (read(edgeHeaderFile) ?? env["HOLDFAST_EDGE_HEADERS"] ?? "").split("\n");
  const headers: Record<string, string> = {};
  for (const line of lines.map((one) => one.trim()).filter((one) => one !== "")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    // Its value may be a secret, so only the name is repeated.
    if (colon < 1 || !/^[a-z0-9-]+$/.test(name) || !isValue(value))
      throw new UsageError(
        `A header for the edge must be \`name: value\` on one line${colon > 0 ? `; see ${name}` : ""}.`,
      );
    headers[name] = value;
  }
  const given = cookie?.trim();
  if (!given) return headers;
  if (!isValue(given))
    throw new UsageError("The cookies for the edge must be one line, as in the header `cookie`.");
  return { ...headers, cookie: given.replace(/^cookie:\s*/i, "") };
}

const isValue = (text: string) => /^[\x20-\x7e]+$/.test(text);

function read(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}
