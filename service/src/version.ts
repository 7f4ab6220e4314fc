// The version of this build, as the root package states it.

import { readFileSync } from "node:fs";

export const version: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;
