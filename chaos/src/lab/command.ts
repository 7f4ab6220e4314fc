// The command line of the checkout, as the lab runs it.

import { fileURLToPath } from "node:url";

export const holdfast = fileURLToPath(new URL("../../../cli/bin/holdfast.mjs", import.meta.url));
