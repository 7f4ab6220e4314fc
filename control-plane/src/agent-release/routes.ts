// Hands out the agent to machines that have nothing yet, on both listeners, to anybody: it holds no secret, and
// whoever installs it compares its digest. Only files of the release can be named, so no path leads elsewhere.

import { createReadStream } from "node:fs";
import { join } from "node:path";
import { ApiError } from "@holdfast/contracts/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AgentReleases } from "./release.ts";

/** As they are registered; on the node-facing listener they need no certificate. */
export const agentRoutes = { installer: "/agent/install.sh", archive: "/agent/:file" } as const;

/** Downloads of 45 MB at a time, of both listeners together; further ones are asked to come again. */
const MOST_AT_ONCE = 32;
const AGAIN_SECONDS = 5;
/** One that takes nothing for so long keeps others waiting no longer. */
const STALLED_MS = 60_000;

export function agentReleaseRoutes(api: { http: FastifyInstance; agentReleases: AgentReleases }): void {
  const { http, agentReleases: releases } = api;

  const archive = async (request: FastifyRequest, reply: FastifyReply) => {
    const { file } = request.params as { file: string };
    const release = releases.current();
    const found = release?.archives.find((one) => one.file === file);
    if (!release || !found) throw unknown();
    reply
      .type("application/gzip")
      .header("accept-ranges", "bytes")
      .header("cache-control", "public, max-age=31536000, immutable")
      .header("etag", `"${found.sha256}"`);
    if (request.headers["if-none-match"] === `"${found.sha256}"`) return reply.code(304).send();
    const part = rangeOf(request, found);
    if (part === "unsatisfiable") {
      return reply.code(416).header("content-range", `bytes */${found.bytes}`).send();
    }
    const { start, end } = part ?? { start: 0, end: found.bytes - 1 };
    if (part) reply.code(206).header("content-range", `bytes ${start}-${end}/${found.bytes}`);
    reply.header("content-length", end - start + 1);
    if (request.method === "HEAD") return reply.send();
    if (releases.downloads >= MOST_AT_ONCE) {
      throw new ApiError("rate_limit_exceeded", {
        message: `${MOST_AT_ONCE} machines download the agent at this moment.`,
        headers: { "retry-after": String(AGAIN_SECONDS) },
      });
    }
    releases.downloads += 1;
    reply.raw.setTimeout(STALLED_MS, () => reply.raw.destroy());
    reply.raw.once("close", () => {
      releases.downloads -= 1;
    });
    return reply.send(createReadStream(join(release.directory, found.file), { start, end }));
  };

  http.get(agentRoutes.installer, async (request, reply) => {
    const release = releases.current();
    if (!release) throw unknown();
    const { text, sha256 } = release.installer;
    reply.type("text/x-shellscript; charset=utf-8").header("cache-control", "no-cache");
    reply.header("etag", `"${sha256}"`);
    return request.headers["if-none-match"] === `"${sha256}"` ? reply.code(304).send() : reply.send(text);
  });
  // Fastify's own HEAD would read the file to its end.
  http.route({ method: ["GET", "HEAD"], url: agentRoutes.archive, handler: archive });
}

function unknown(): ApiError {
  return new ApiError("route_not_found", {
    message: "This server hands out no such file of the agent.",
    nextStep:
      'Take a new line from "Add a node"; if there is none, pack the agent on the server: `npm run pack-agent`.',
  });
}

/** One range, as those who go on with a download ask for; of several the whole is sent, as is allowed. */
function rangeOf(
  { headers }: FastifyRequest,
  { bytes, sha256 }: { bytes: number; sha256: string },
): { start: number; end: number } | "unsatisfiable" | undefined {
  if (headers["if-range"] !== undefined && headers["if-range"] !== `"${sha256}"`) return undefined;
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const start = first === "" ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? bytes - 1 : Math.min(Number(last), bytes - 1);
  return start > end || start >= bytes ? "unsatisfiable" : { start, end };
}
