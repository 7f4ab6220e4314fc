// public-edge-process <directory> <name> <listen> <target>: terminates TLS for browsers and passes every request on to the api,
// over TLS of its own. It asks no client for a certificate. What it presents to the api is its own, if there is one: `own.pem`.
// Connections end with their response, so that a lapse of time knows when none is under way.

import { existsSync, readFileSync } from "node:fs";
import { Agent, request as ask, createServer } from "node:https";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

const [directory = "", name = "", listen = "", target = ""] = process.argv.slice(2);
const pem = (file: string) => readFileSync(join(directory, file));
const own = existsSync(join(directory, "own.pem")) ? { cert: pem("own.pem"), key: pem("own.pem") } : {};
const api = new Agent({ ca: pem("trust.pem"), servername: name, ...own });

const server = createServer({ cert: pem("listener.pem"), key: pem("listener.pem") }, async (request, response) => {
  const body = await buffer(request).catch(() => undefined);
  if (!body) return;
  const { connection, upgrade, ...headers } = request.headers;
  const { method, url: path } = request;
  const onward = ask({ ...placeOf(target), agent: api, method, path, headers });
  onward.once("error", () => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>"));
  onward.once("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: "close" });
    answer.pipe(response);
  });
  onward.end(body);
});
server.listen(placeOf(listen), () => process.send?.({ type: "ready", ports: {} }));
process.once("disconnect", () => process.exit(0));

function placeOf(place: string): { host: string; port: number } {
  const [host = "", port] = place.split(":");
  return { host, port: Number(port) };
}
