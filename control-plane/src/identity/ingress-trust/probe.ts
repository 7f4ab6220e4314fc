// Sends a canary certificate along one way to a node-facing listener, as an agent would connect. The server's certificate is
// looked at, and not required to be trusted: an ingress with a CA of its own must be recognized, too, and a canary is worth
// nothing to whoever receives it.

import { request } from "node:https";
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { CANARY_PATH } from "@holdfast/service/node-identity/canary";
import type { Authority, IssuedCanary } from "../authority.ts";
import { type Outcome, outcomeOf, type Reply } from "./outcome.ts";

const ANSWER_WITHIN_MS = 5_000;
const MOST_BYTES = 16 * 1024;

export async function probe(
  way: { url: string; address: string },
  { authority, canary }: { authority: Pick<Authority, "trustBundle">; canary: IssuedCanary },
): Promise<Outcome> {
  return outcomeOf(await send(way, authority, canary), canary);
}

function send(
  { url, address }: { url: string; address: string },
  { trustBundle }: Pick<Authority, "trustBundle">,
  { cert, key }: IssuedCanary,
): Promise<Reply> {
  const { hostname, host, port } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const failed = (error: Error & { code?: string }) =>
      signal.aborted
        ? resolve({ kind: "none", code: "TIMEOUT", message: `no answer within ${ANSWER_WITHIN_MS} ms` })
        : resolve({ kind: "none", code: String(error.code ?? "UNKNOWN"), message: error.message });
    const outgoing = request({
      ...{ host: address, port: port === "" ? 443 : Number(port), path: CANARY_PATH, headers: { host } },
      ...(isIP(name) === 0 ? { servername: name } : {}),
      ...{ cert, key, ca: [...trustBundle], rejectUnauthorized: false },
      // A connection of its own: a resumed session would not show the certificate again.
      agent: false,
      signal,
    });
    outgoing.once("error", failed);
    outgoing.once("response", (incoming) => {
      const { authorized, authorizationError } = incoming.socket as TLSSocket;
      const parts: Buffer[] = [];
      let size = 0;
      incoming.on("data", (part: Buffer) => {
        size += part.length;
        if (size <= MOST_BYTES) parts.push(part);
        else outgoing.destroy(Object.assign(new Error("a long response"), { code: "ANSWER_TOO_LARGE" }));
      });
      incoming.once("error", failed);
      incoming.once("end", () =>
        resolve({
          ...{ kind: "answer", status: incoming.statusCode ?? 0, text: Buffer.concat(parts).toString() },
          untrusted: authorized ? undefined : String(authorizationError),
        }),
      );
    });
    outgoing.end();
  });
}
