// Every endpoint of the installation, by the listener that serves it. The files beside this one are read from the disk,
// so that declaring an endpoint is all it takes. The api checks at start that each has exactly one handler. Not for
// browsers and agents, which import the endpoints that they call.

import { readdirSync } from "node:fs";
import type { Endpoint, Method } from "../endpoint.ts";
import { serviceEndpoints } from "../internal/endpoints.ts";
import { nodeApiEndpoints } from "../node/endpoints.ts";

const here = new URL("./", import.meta.url);
const methods: readonly Method[] = ["GET", "POST", "PATCH", "DELETE"];

const declared = await loadDeclared();
const isFor = (access: Endpoint["access"]) => (endpoint: Endpoint) => endpoint.access === access;

/** Of the public API. */
export const allEndpoints: readonly Endpoint[] = declared.filter(
  (endpoint) => !isFor("node")(endpoint) && !isFor("service")(endpoint),
);
export const allNodeEndpoints: readonly Endpoint[] = [...nodeApiEndpoints, ...declared.filter(isFor("node"))];
export const allInternalEndpoints: readonly Endpoint[] = [
  ...serviceEndpoints,
  ...declared.filter(isFor("service")),
];

/** In order of their files, and within each of path and method: lists and creates come before single things. */
async function loadDeclared(): Promise<Endpoint[]> {
  const files = readdirSync(here)
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && name !== "all.ts")
    .sort();
  const modules = await Promise.all(files.map((name) => import(new URL(name, here).href) as Promise<object>));
  return modules.flatMap((module) => Object.values(module).filter(isEndpoint).sort(byPathAndMethod));
}

function isEndpoint(value: unknown): value is Endpoint {
  return typeof value === "object" && value !== null && "method" in value && "path" in value && "access" in value;
}

function byPathAndMethod(one: Endpoint, other: Endpoint): number {
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  return methods.indexOf(one.method) - methods.indexOf(other.method);
}
