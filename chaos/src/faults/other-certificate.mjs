// An agent that is started with this presents to the terminal gateway the certificate in the file LAB_TERMINAL_IDENTITY, which
// has its key, too. To the api it presents its own.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const own = "agentFor(options.credentials())";
// OpenSSL finds the key and the certificates by the names of their blocks.
const pem = JSON.stringify(readFileSync(process.env["LAB_TERMINAL_IDENTITY"] ?? "", "utf8"));
const other = `agentFor({ ...options.credentials(), keyPem: ${pem}, chainPem: ${pem} })`;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith("/node-agent/src/terminals/stream.ts")) return loaded;
    const source = String(loaded.source);
    if (!source.includes(own)) throw new Error(`${url} does not have: ${own}`);
    return { ...loaded, source: source.replace(own, () => other) };
  },
});
