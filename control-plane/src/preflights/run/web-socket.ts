// A terminal's WebSocket as a client opens it, followed to its outcome: ready, an error frame, or neither in time. What
// refuses the upgrade instead is recognised, because between a browser and the gateway there may be proxies.

import type { IncomingMessage } from "node:http";
import { LISTENER_HEADER } from "@holdfast/contracts/headers";
import { type PageKind, pageKind } from "@holdfast/contracts/preflight/page-kind";
import {
  type ChainStep,
  readServerFrame,
  TERMINAL_PROTOCOL,
  type TerminalError,
  TOKEN_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import WebSocket from "ws";

/** Why a WebSocket did not open. `code`: of our error envelope. */
export type Refused = { status: number | null; code: string | null; page: PageKind | null; detail: string };

export type Dialled = {
  chain: ReadonlySet<ChainStep>;
  /** Undefined: it is open. */
  refused: Refused | undefined;
  /** The first frame, or nothing in time. */
  answered(signal: AbortSignal): Promise<void>;
  /** Undefined: neither `ready` nor an error came in time. */
  outcome(signal: AbortSignal): Promise<"ready" | TerminalError | undefined>;
  /** Why the gateway closed it; null: it did not. */
  closed(): string | null;
  close(): void;
};

export type DialOptions = {
  headers: Record<string, string>;
  protocols: string[];
  tls?: object | undefined;
  signal: AbortSignal;
};

const MOST_PAGE_BYTES = 16 * 1024;

export const terminalProtocols = (token: string) => [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${token}`];

/** Resolves when the WebSocket is open or refused. */
export async function dial(url: string, { headers, protocols, tls, signal }: DialOptions): Promise<Dialled> {
  const chain = new Set<ChainStep>();
  const first = gate<void>();
  const end = gate<"ready" | TerminalError | undefined>();
  let reason: string | null = null;
  const socket = new WebSocket(url, protocols, { ...tls, headers, perMessageDeflate: false });
  socket.on("message", (data, isBinary) => {
    const frame = isBinary ? undefined : readServerFrame(String(data));
    if (!frame) return;
    if (frame.type === "status") chain.add(frame.step);
    if (frame.type === "ready") end.open("ready");
    if (frame.type === "error") end.open(frame);
    first.open();
  });
  socket.on("close", (code, text) => {
    reason = `closed with ${code} ${String(text)}`.trim();
    first.open();
    end.open(undefined);
  });
  return {
    ...{ chain, refused: await opening(socket, signal) },
    answered: (until) => first.passed(until),
    outcome: (until) => end.passed(until),
    closed: () => reason,
    close: () => socket.terminate(),
  };
}

function opening(socket: WebSocket, signal: AbortSignal): Promise<Refused | undefined> {
  return new Promise((resolve) => {
    let isSettled = false;
    const settle = (refused: Refused | undefined) => {
      // The signal ends with the check that opens it; a WebSocket that is open stays so for the checks after it.
      if (isSettled) return;
      isSettled = true;
      resolve(refused);
      if (refused) socket.terminate();
    };
    socket.once("open", () => settle(undefined));
    socket.once("unexpected-response", (_request, response) => void readRefusal(response).then(settle));
    socket.on("error", (error) => settle({ status: null, code: null, page: null, detail: error.message }));
    signal.addEventListener(
      "abort",
      () => settle({ status: null, code: null, page: null, detail: "no answer to the upgrade in time" }),
      { once: true },
    );
  });
}

async function readRefusal(response: IncomingMessage): Promise<Refused> {
  const { statusCode: status = 0, headers } = response;
  const text = await readText(response);
  const code = codeIn(text);
  const { location, [LISTENER_HEADER]: listener } = headers;
  const page = code === null ? pageKind({ status, text, location }) : null;
  const from = listener === undefined ? "" : ", from the gateway";
  return { status, code, page, detail: `HTTP ${status}${code ? ` ${code}` : ""}${from}` };
}

export async function readText(response: AsyncIterable<unknown>): Promise<string> {
  let text = "";
  try {
    for await (const part of response) {
      text += String(part);
      if (text.length > MOST_PAGE_BYTES) break;
    }
  } catch {
    // What came until then is enough.
  }
  return text;
}

function codeIn(text: string): string | null {
  try {
    const { code } = JSON.parse(text) as { code?: unknown };
    return typeof code === "string" && /^[a-z_]{1,64}$/.test(code) ? code : null;
  } catch {
    return null;
  }
}

/** Opened once; whoever passes before that waits, until their signal. */
function gate<T>() {
  let opened: { value: T } | undefined;
  const waiting = new Set<() => void>();
  return {
    open(value: T) {
      opened ??= { value };
      for (const pass of waiting) pass();
    },
    passed: (signal: AbortSignal): Promise<T | undefined> =>
      new Promise((resolve) => {
        const pass = () => {
          waiting.delete(pass);
          signal.removeEventListener("abort", pass);
          resolve(opened?.value);
        };
        waiting.add(pass);
        signal.addEventListener("abort", pass, { once: true });
        if (opened || signal.aborted) pass();
      }),
  };
}
