import { allEndpoints, allInternalEndpoints, allNodeEndpoints } from "@holdfast/contracts/endpoints/all";
import Fastify from "fastify";
import { describe, expect, it } from "vitest";
import { checkHandlers, methodsOf } from "./routes.ts";

describe("declared endpoints", () => {
  it.for([
    ["public", allEndpoints],
    ["node-facing", allNodeEndpoints],
    ["internal", allInternalEndpoints],
  ] as const)("stop the start of the api while one of the %s ones has no handler", ([, endpoints]) => {
    const http = Fastify();
    const [missing, ...others] = endpoints;
    const add = ({ method, path }: (typeof endpoints)[number]) =>
      http.route({
        method,
        url: path.replace(/\{(\w+)\}/g, ":$1"),
        exposeHeadRoute: false,
        handler: async () => null,
      });
    others.forEach(add);
    expect(() => checkHandlers(http, endpoints)).toThrow(`${missing?.name} has no handler`);
    if (missing) add(missing);
    expect(() => checkHandlers(http, endpoints)).not.toThrow();
  });

  it("are served on one listener each", () => {
    const names = [...allEndpoints, ...allNodeEndpoints, ...allInternalEndpoints].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(allEndpoints.filter(({ access }) => access === "node" || access === "service")).toEqual([]);
  });

  it("say which methods a path has", () => {
    expect(methodsOf("/v1/projects").toSorted()).toEqual(["GET", "POST"]);
    expect(methodsOf("/v1/nothing")).toEqual([]);
  });
});
