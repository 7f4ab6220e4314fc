// Serves the built web app from memory. Only files of the build are served, so no path can lead
// anywhere else; any other page address gets the app, which shows its own not-found page.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ApiError } from "@holdfast/contracts/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { PagePolicy } from "./page-policy.ts";

const contentTypes: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};
const compressible = new Set([".css", ".html", ".js", ".json", ".svg"]);

type Asset = {
  body: Buffer;
  type: string;
  etag: string;
  immutable: boolean;
  gzipped: () => Promise<Buffer> | undefined;
};

export function serveWebApp(http: FastifyInstance, directory: string, policy: PagePolicy): void {
  const assets = loadAssets(directory);
  http.get("/*", async (request, reply) => {
    const path = request.url.split("?", 1)[0] ?? "/";
    const asset = assets.get(path) ?? pageFor(path, request, assets);
    reply.headers(await policy.headers());
    return sendAsset(asset, request, reply);
  });
}

function pageFor(path: string, request: FastifyRequest, assets: Map<string, Asset>): Asset {
  const isPage = !path.startsWith("/v1/") && request.headers.accept?.includes("text/html");
  const index = assets.get("/index.html");
  if (!isPage) throw new ApiError("route_not_found");
  if (!index) {
    throw new ApiError("route_not_found", { message: "The web app is not built. `npm start` builds it." });
  }
  return index;
}

async function sendAsset(asset: Asset, request: FastifyRequest, reply: FastifyReply) {
  reply
    .type(asset.type)
    .header("etag", asset.etag)
    .header("vary", "accept-encoding")
    .header("cache-control", asset.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  if (request.headers["if-none-match"] === asset.etag) return reply.code(304).send();
  const gzipped = /\bgzip\b/.test(String(request.headers["accept-encoding"])) ? await asset.gzipped() : undefined;
  return gzipped ? reply.header("content-encoding", "gzip").send(gzipped) : reply.send(asset.body);
}

function loadAssets(directory: string): Map<string, Asset> {
  let files: string[];
  try {
    files = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    files = [];
  }
  return new Map(files.map((file) => [`/${relative(directory, file)}`, loadAsset(file)]));
}

function loadAsset(file: string): Asset {
  const body = readFileSync(file);
  const extension = extname(file);
  let gzipped: Promise<Buffer> | undefined;
  return {
    body,
    type: contentTypes[extension] ?? "application/octet-stream",
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
    // Vite names these files by their content.
    immutable: file.includes("/assets/"),
    gzipped: () => {
      if (compressible.has(extension) && body.length > 1024) gzipped ??= promisify(gzip)(body);
      return gzipped;
    },
  };
}
