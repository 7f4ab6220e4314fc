// Everything that a person can read over HTTP: every GET endpoint of the public API, with the ids given in its path, and once
// more for every filter that takes one of the values given.

import { pathOf } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import type { Browser, TestApi } from "../../../testkit/api/api.ts";

/** A response with its headers, as text. */
export type Seen = { where: string; endpoint: string; status: number; bytes: string };

export type Wanted = {
  orgId: string;
  /** By the name of a path parameter. */
  ids: Readonly<Record<string, string>>;
  /** By the name of a query parameter. */
  filters: Readonly<Record<string, string>>;
};

const AT_ONCE = 8;

export const readable = allEndpoints.filter(({ method }) => method === "GET");

export async function everyGet(api: TestApi, person: Browser, { orgId, ids, filters }: Wanted): Promise<Seen[]> {
  const paths = readable.flatMap((endpoint) => {
    const path = pathOf(endpoint, ids);
    if (path.includes("undefined")) throw new Error(`no id for ${endpoint.path}`);
    const named = Object.keys(endpoint.query?.shape ?? {}).flatMap((name) => {
      const value = filters[name];
      return value === undefined ? [] : [`${path}?${new URLSearchParams({ [name]: value })}`];
    });
    return [path, ...named].map((one) => ({ endpoint: endpoint.name, path: one }));
  });
  const read = async ({ endpoint, path }: (typeof paths)[number]): Promise<Seen> => {
    const headers = { cookie: person.cookie, "x-org-id": orgId };
    const response = await fetch(api.url + path, { headers });
    const bytes = `${JSON.stringify([...response.headers])}\n${await response.text()}`;
    return { where: `GET ${path}`, endpoint, status: response.status, bytes };
  };
  const seen: Seen[] = [];
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    seen.push(...(await Promise.all(paths.slice(at, at + AT_ONCE).map(read))));
  }
  return seen;
}
