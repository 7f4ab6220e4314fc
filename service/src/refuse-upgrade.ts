// Rejects an upgrade on the socket itself, where there is no response object: an HTTP response with the error envelope.

import type { Duplex } from "node:stream";
import type { ApiError } from "@holdfast/contracts/errors";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";

export function refuseUpgrade(
  socket: Duplex,
  error: ApiError,
  correlationId: string,
  more: Record<string, string> = {},
): void {
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify(error.envelope(correlationId));
  const headers = {
    ...error.headers,
    ...more,
    "content-type": "application/json; charset=utf-8",
    [CORRELATION_HEADER]: correlationId,
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${error.status} Refused\r\n${lines.join("")}\r\n${body}`);
}
