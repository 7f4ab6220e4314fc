// Waits until a stream is open at the gateway that has its terminal, or translates why it is not.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { ApiError, type ErrorCode, ErrorEnvelope, errorCatalogue } from "@holdfast/contracts/errors";
import type { WebSocket } from "ws";

const MOST_ANSWER_CHARACTERS = 16 * 1024;

export function relayUnavailable(message = "The gateway that has this terminal could not be reached."): ApiError {
  return new ApiError("terminal_relay_unavailable", { message, headers: { "retry-after": "1" } });
}

/** Resolves with what it runs on. It is paused, so that no frame is missed. Rejects with the owner's own refusal, if it has one. */
export function opened(socket: WebSocket, onUnreachable: (reason: string) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let below: Socket | undefined;
    socket.once("upgrade", (response) => {
      below = response.socket;
    });
    socket.once("open", () => {
      socket.pause();
      if (below) resolve(below);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      onUnreachable(error.code ?? error.message);
      reject(relayUnavailable());
    });
    socket.once("unexpected-response", (_request, response: IncomingMessage) => {
      void refusalIn(response).then((refusal) => {
        if (!refusal) onUnreachable(`answered ${response.statusCode} in a form that is not a gateway's`);
        reject(refusal ?? relayUnavailable());
        socket.terminate();
      });
    });
  });
}

async function refusalIn(response: IncomingMessage): Promise<ApiError | undefined> {
  try {
    let text = "";
    for await (const part of response.setEncoding("utf8")) {
      text += part;
      if (text.length > MOST_ANSWER_CHARACTERS) return undefined;
    }
    const { code, message, next_step, details } = ErrorEnvelope.parse(JSON.parse(text));
    if (!Object.hasOwn(errorCatalogue, code)) return undefined;
    return new ApiError(code as ErrorCode, { message, nextStep: next_step, details });
  } catch {
    return undefined;
  }
}
