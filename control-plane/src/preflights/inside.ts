// Requests to this api's own public routes on behalf of a caller, without a network: a preflight that the api runs gets what
// its caller may get, by the same rules, and is audited as theirs. Credentials stay in memory for the length of a run.

import { type Client, createClient } from "@holdfast/contracts/client";
import type { FastifyInstance, InjectOptions } from "fastify";

export function clientInside(
  http: FastifyInstance,
  { headers, orgId, address }: { headers: Record<string, string>; orgId: string; address: string },
): Client {
  const send = async (input: string | URL | Request, init: RequestInit = {}) => {
    const answer = await http.inject({
      method: (init.method ?? "GET") as NonNullable<InjectOptions["method"]>,
      ...{ url: String(input), remoteAddress: address },
      headers: { ...(init.headers as Record<string, string>), ...headers },
      ...(typeof init.body === "string" ? { payload: init.body } : {}),
      ...(init.signal ? { signal: init.signal } : {}),
    });
    const fields = Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as [string, string]] : [],
    );
    return new Response(answer.statusCode === 204 ? null : answer.body, {
      ...{ status: answer.statusCode, headers: fields },
    });
  };
  return createClient({ baseUrl: "", orgId, fetch: send });
}
