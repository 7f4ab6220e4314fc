// An HTTP server on loopback that serves one file with ranges and entity tags, and misbehaves as a test wants.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export type ImageServer = {
  url: string;
  origin: string;
  /** May be replaced at any time. */
  file: Buffer;
  etag: string | undefined;
  /** For each request in turn: sends the file up to this byte only, and then waits for `received`. */
  breaks: (number | undefined)[];
  /** Breaks the connection that waits, once the client has received what was sent: what is on its way would be lost. */
  received(bytes: number): void;
  /** Takes a request over; true: it was answered. */
  instead: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  requests: { path: string; range: string | undefined; ifRange: string | undefined; status: number }[];
};

export async function startImageServer(file: Buffer): Promise<ImageServer> {
  let waiting: { at: number; response: ServerResponse } | undefined;
  const server = createServer((request, response) => {
    const note = (status: number) =>
      image.requests.push({
        ...{ path: request.url ?? "", range: request.headers.range, status },
        ifRange: request.headers["if-range"] as string | undefined,
      });
    if (image.instead?.(request, response)) {
      note(response.statusCode);
      return;
    }
    const { body, status, headers, from } = answerTo(request, image);
    note(status);
    response.writeHead(status, headers);
    const at = image.breaks.shift();
    if (at === undefined) response.end(body);
    else {
      response.write(body.subarray(0, at - from));
      waiting = { at, response };
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const image: ImageServer = {
    ...{ origin, url: `${origin}/base/image.qcow2`, file, etag: '"1"', breaks: [], instead: undefined },
    requests: [],
    received(bytes) {
      if (waiting === undefined || bytes < waiting.at) return;
      waiting.response.socket?.destroy();
      waiting = undefined;
    },
  };
  return image;
}

function answerTo(request: IncomingMessage, { file, etag }: ImageServer) {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? Number.NaN);
  const condition = request.headers["if-range"];
  const tag: Record<string, string> = etag === undefined ? {} : { etag };
  if (Number.isNaN(from) || (condition !== undefined && condition !== etag))
    return { status: 200, from: 0, body: file, headers: { ...tag, "content-length": file.length } };
  if (from >= file.length)
    return {
      status: 416,
      from: 0,
      body: Buffer.alloc(0),
      headers: { ...tag, "content-range": `bytes */${file.length}` },
    };
  const body = file.subarray(from);
  const range = `bytes ${from}-${file.length - 1}/${file.length}`;
  return { status: 206, from, body, headers: { ...tag, "content-length": body.length, "content-range": range } };
}
