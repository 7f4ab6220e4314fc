// The routes of all modules, each on the listener it is meant for. The api does not start if a declared endpoint has no handler.

import { fileURLToPath } from "node:url";
import type { Endpoint } from "@holdfast/contracts/endpoint";
import { allEndpoints, allInternalEndpoints, allNodeEndpoints } from "@holdfast/contracts/endpoints/all";
import { openApiDocument } from "@holdfast/contracts/public/openapi";
import { version } from "@holdfast/service/version";
import type { FastifyInstance } from "fastify";
import type { InternalApi } from "../internal-api/route.ts";
import type { Module } from "../module.ts";
import * as modules from "../modules.ts";
import type { NodeApi } from "../node-api/route.ts";
import type { ApiContext } from "./context.ts";
import { createPagePolicy } from "./page-policy.ts";
import { serveWebApp } from "./web-app.ts";

const all: readonly Module[] = Object.values(modules);
const webApp = fileURLToPath(new URL("../../../web/dist", import.meta.url));

export async function addPublicRoutes(api: ApiContext): Promise<void> {
  for (const module of all) await module.publicRoutes?.(api);
  api.http.get("/openapi.json", (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(documentInJson()),
  );
  serveWebApp(api.http, webApp, createPagePolicy(api));
  checkHandlers(api.http, allEndpoints);
}

let document: string | undefined;

/** Made when it is first read: it takes a tenth of the processor time of a start. */
function documentInJson(): string {
  document ??= JSON.stringify(openApiDocument(allEndpoints, { version }));
  return document;
}

/** The endpoints for agents. Of these, the public listener has only enrollment and the download of the agent. */
export async function addNodeRoutes(nodeApi: NodeApi, api: ApiContext): Promise<void> {
  for (const module of all) await module.nodeRoutes?.(nodeApi, api);
  checkHandlers(nodeApi.http, allNodeEndpoints);
}

/** The endpoints for other processes of the installation, on the internal listener only. */
export async function addInternalRoutes(internalApi: InternalApi, api: ApiContext): Promise<void> {
  for (const module of all) await module.internalRoutes?.(internalApi, api);
  checkHandlers(internalApi.http, allInternalEndpoints);
}

/** Throws for the first endpoint without a route on the listener. */
export function checkHandlers(http: FastifyInstance, endpoints: readonly Endpoint[]): void {
  for (const { name, method, path } of endpoints) {
    const url = path.replace(/\{(\w+)\}/g, ":$1");
    if (!http.hasRoute({ method, url })) throw new Error(`${name} has no handler`);
  }
}

const patterns = allEndpoints.map(({ method, path }) => ({
  method,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
}));

/** Which methods the public API has for a path. */
export function methodsOf(path: string): string[] {
  return patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
}
