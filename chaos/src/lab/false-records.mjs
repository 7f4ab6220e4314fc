// For the lab's self-test: an agent that is started with this writes one and the same false correlation id into every
// diagnostic record, its log line included.

import { registerHooks } from "node:module";

const made = "const correlation_id = known ?? (wrong ? uuidv7() : null);";
const falsified = 'const correlation_id = known === "" ? null : "01900000-0000-7000-8000-000000000000";';

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith("/node-agent/src/diagnostics/ring.ts")) return loaded;
    const source = String(loaded.source);
    if (!source.includes(made)) throw new Error(`${url} does not make correlation ids as the self-test knows it`);
    return { ...loaded, source: source.replace(made, falsified) };
  },
});
