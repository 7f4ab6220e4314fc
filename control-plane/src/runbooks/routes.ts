// The runbooks over HTTP, to anybody: they hold no secret and nothing of a tenant, and whoever needs one may be unable to
// sign in. Nothing here depends on the database.

import { ApiError } from "@holdfast/contracts/errors";
import { hasRunbook, RUNBOOKS_PATH } from "@holdfast/contracts/reasons/catalogue";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { INDEX, readRunbook } from "./pages.ts";
import { htmlHeaders } from "./render.ts";

export function runbookRoutes({ http }: { http: FastifyInstance }): void {
  http.get(RUNBOOKS_PATH, (request, reply) => send(INDEX, { markdown: prefersMarkdown(request), reply }));
  http.get(`${RUNBOOKS_PATH}/:page`, (request, reply) => {
    const { page } = request.params as { page: string };
    const name = page.replace(/\.md$/, "");
    if (!hasRunbook(name)) {
      throw new ApiError("not_found", {
        message: "There is no runbook with this name.",
        nextStep: `GET ${RUNBOOKS_PATH} lists them all. A code that is missing there belongs to a newer version.`,
      });
    }
    return send(name, { markdown: name !== page || prefersMarkdown(request), reply });
  });
}

async function send(name: string, { markdown, reply }: { markdown: boolean; reply: FastifyReply }) {
  const runbook = await readRunbook(name);
  reply.headers({ "cache-control": "no-cache", vary: "accept" });
  if (markdown) return reply.type("text/markdown; charset=utf-8").send(runbook.markdown);
  return reply.type("text/html; charset=utf-8").headers(htmlHeaders).send(runbook.html);
}

function prefersMarkdown({ headers: { accept = "" } }: FastifyRequest): boolean {
  return /\btext\/(markdown|plain)\b/.test(accept) && !/\btext\/html\b/.test(accept);
}
