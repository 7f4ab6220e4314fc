// One terminal's connection: does what connecting.ts decides, with a real WebSocket and a real clock.
// Output does not pass through the decisions: bytes go from the socket to the screen as they come.

import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import {
  type ClientFrame,
  type InputPlace,
  MOST_INPUT_BYTES,
  readServerFrame,
  type ServerFrame,
  type Size,
  TERMINAL_PATH,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal-frames";
import { createTerminalInput, type TerminalInput } from "@holdfast/contracts/terminal-input";
import { createLiveness, PING_MS } from "@holdfast/contracts/terminal-liveness";
import { createStore, type Store } from "../../store.ts";
import { type Acknowledging, acknowledging } from "./acknowledging.ts";
import { alarmOf, begin, step } from "./connecting.ts";
import type { Connecting, Effect, Event, Grant } from "./connecting-states.ts";
import { type Failure, ofRefusal } from "./failures.ts";

/** What bytes are shown on; screen.ts makes one of xterm.js. */
export type Display = {
  write(bytes: Uint8Array, shown: () => void): void;
  /** What comes next does not follow on what is shown. */
  reset(): void;
  /** It would, but something in between is lost for good. */
  showLoss(): void;
  /** Until then, answers to what programs asked long ago are not sent again. */
  muteUntilShown(bytes: number): void;
};

export type ConnectionOptions = {
  /** The shell to come back to; undefined: a new one. */
  shell: string | undefined;
  /** A token is of no use before there is something to show on. */
  display: Promise<Display>;
  /** Output from `offset` on, where the same shell is shown already. */
  ask(asked: { shell: string | undefined; offset: number | undefined; signal: AbortSignal }): Promise<Grant>;
  report(sessionId: string, failure: Failure): void;
  /** The page was loaded before this gateway was there: its policy knows only older ones. */
  onPolicyRefused(): void;
};

export type Connection = {
  state: Store<Connecting>;
  /** Kept until the shell has it, also while it cannot be reached. False: too much waits already, and it was not taken. */
  write(bytes: Bytes): boolean;
  /** Typed bytes of which nobody confirmed that they reached the shell. */
  unconfirmed(): number;
  resize(size: Size): void;
  /** At once, whatever is under way. */
  tryAgain(): void;
  /** No more tries by itself. */
  stop(): void;
  openNew(): void;
  leave(): void;
};

type Bytes = Uint8Array<ArrayBuffer>;
type Input = TerminalInput<Bytes>;

const CHECK_ROUTE_MS = 4_000;

export function openConnection(options: ConnectionOptions): Connection {
  const now = () => performance.now();
  const first = begin(options.shell, now());
  const state = createStore<Connecting>(first.state);
  let line: Line | undefined;
  let asking: AbortController | undefined;
  let checking: AbortController | undefined;
  let alarm: ReturnType<typeof setTimeout> | undefined;
  let size: Size | undefined;
  /** What the screen shows, and how far. */
  let shown: { shell: string; offset: number } | undefined;
  /** What was typed for the shell of that id. */
  let typed: { shell: string; input: Input } | undefined;
  let left = false;

  const happen = (event: Event) => {
    if (!left) follow(step(state.get(), event));
  };

  const follow = (next: { state: Connecting; effects: Effect[] }) => {
    state.set(next.state);
    for (const effect of next.effects) carryOut(effect);
    clearTimeout(alarm);
    const at = alarmOf(next.state);
    if (at === undefined) return;
    // Timers may come a moment early by the other clock.
    alarm = setTimeout(() => happen({ type: "alarm", at: Math.max(at, now()) }), Math.max(0, at - now()));
  };

  const carryOut = (effect: Effect) => {
    switch (effect.do) {
      case "ask":
        return void askFor(effect.shell);
      case "join":
        return void join(effect.grant);
      case "check_route":
        return void checkRoute(effect.url);
      case "hang_up":
        asking?.abort();
        checking?.abort();
        line?.hangUp();
        line = undefined;
        return;
      case "report":
        return options.report(effect.sessionId, effect.failure);
    }
  };

  const askFor = async (shell: string | undefined) => {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    const offset = shown?.shell === shell ? shown?.offset : undefined;
    try {
      const [grant] = await Promise.all([options.ask({ shell, offset, signal }), options.display]);
      if (!signal.aborted) happen({ type: "granted", grant, at: now() });
    } catch (error) {
      if (!signal.aborted) happen({ type: "refused", failure: ofRefusal(error), at: now() });
    }
  };

  const join = async (grant: Grant) => {
    const display = await options.display;
    if (left || state.get().phase !== "joining") return;
    if (typed?.shell !== grant.sessionId)
      typed = { shell: grant.sessionId, input: createTerminalInput(MOST_INPUT_BYTES) };
    line = openLine(grant, {
      input: typed.input,
      size: () => size,
      display,
      onPolicyRefused: options.onPolicyRefused,
      onOpen: () => happen({ type: "opened", at: now() }),
      onFrame(frame) {
        if (frame.type === "ready") {
          const same = shown?.shell === frame.session_id;
          if (shown && same && frame.offset > shown.offset) display.showLoss();
          else if (shown && !(same && frame.offset === shown.offset)) display.reset();
          shown = { shell: frame.session_id, offset: frame.offset };
          display.muteUntilShown(frame.replay);
        }
        happen({ type: "frame", frame, at: now() });
      },
      onBytes: (count) => {
        if (shown) shown.offset += count;
      },
      onClose: (detail) => {
        line = undefined;
        happen({ type: "closed", detail, at: now() });
      },
      onSilent: () => happen({ type: "silent", at: now() }),
    });
  };

  const checkRoute = async (url: string) => {
    checking?.abort();
    checking = new AbortController();
    const { signal } = checking;
    const { reachable, detail } = await askHealth(url, signal);
    if (!signal.aborted) happen({ type: "checked", reachable, detail, at: now() });
  };

  // What the browser says about the network is a hint to try; whether a terminal is there, its socket says.
  const watching = new AbortController();
  const nudge = () => happen({ type: "nudge", at: now() });
  window.addEventListener("online", nudge, watching);
  document.addEventListener("visibilitychange", () => document.hidden || nudge(), watching);

  follow(first);
  return {
    state,
    write(bytes) {
      if (!typed || !hasShell(state.get())) return true;
      const taken = typed.input.add(bytes);
      line?.sendInput();
      return taken;
    },
    unconfirmed: () => typed?.input.unconfirmed() ?? 0,
    resize(next) {
      size = next;
      line?.say({ type: "resize", ...next });
    },
    tryAgain: () => happen({ type: "try_again", at: now() }),
    stop: () => happen({ type: "stop", at: now() }),
    openNew: () => happen({ type: "new_shell", at: now() }),
    leave() {
      left = true;
      watching.abort();
      clearTimeout(alarm);
      asking?.abort();
      checking?.abort();
      line?.hangUp();
    },
  };
}

/** There is one, although it may not be reached at the moment. */
function hasShell(state: Connecting): boolean {
  if ("round" in state) return state.round.shell !== undefined;
  return "lost" in state || state.phase === "ready" || state.phase === "unresponsive";
}

type Line = {
  say(frame: ClientFrame): void;
  /** Sends what may be sent of the input. */
  sendInput(): void;
  /** Nothing is heard of it afterwards. */
  hangUp(): void;
};

type LineOptions = {
  input: Input;
  /** As it is when the socket opens. */
  size(): Size | undefined;
  display: Display;
  onOpen(): void;
  onFrame(frame: ServerFrame): void;
  onBytes(count: number): void;
  onClose(detail?: string): void;
  /** It is open, and the gateway does not answer any more. */
  onSilent(): void;
  onPolicyRefused(): void;
};

/** One WebSocket, from `new` to closed. */
function openLine(grant: Grant, options: LineOptions): Line {
  const { input } = options;
  let socket: WebSocket;
  let credit: Acknowledging = acknowledging();
  let pinging: ReturnType<typeof setInterval> | undefined;
  let arrived = 0;
  let over = false;

  const onViolation = ({ effectiveDirective, blockedURI }: SecurityPolicyViolationEvent) => {
    const ours = effectiveDirective === "connect-src" && blockedURI.startsWith(new URL(grant.url).origin);
    if (ours && !over) options.onPolicyRefused();
  };
  const end = () => {
    over = true;
    input.disconnect();
    clearInterval(pinging);
    document.removeEventListener("securitypolicyviolation", onViolation);
  };
  const lost = (detail?: string) => {
    if (over) return;
    end();
    options.onClose(detail);
  };
  const say = (frame: ClientFrame) => {
    if (!over && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  };
  const askRegularly = () => {
    const liveness = createLiveness(performance.now());
    pinging = setInterval(() => {
      if (liveness.tick(performance.now(), arrived) === "ask") return say({ type: "ping" });
      options.onSilent();
    }, PING_MS);
  };
  const sendInput = () => {
    for (;;) {
      const piece = !over && socket.readyState === WebSocket.OPEN ? input.next() : undefined;
      if (piece === undefined) return;
      socket.send(piece);
    }
  };
  const placeInput = (place: InputPlace | undefined) => {
    const answer = input.place(place);
    if (answer) say(answer);
    sendInput();
  };
  const onFrame = (frame: ServerFrame) => {
    if (frame.type === "ready") {
      credit = acknowledging();
      placeInput(frame.input);
    } else if (frame.type === "input") placeInput(frame);
    else if (frame.type === "ack") {
      input.acknowledge(frame.bytes);
      sendInput();
    }
    options.onFrame(frame);
  };

  document.addEventListener("securitypolicyviolation", onViolation);
  try {
    const offered = [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${grant.token}`, `${WRITER_PROTOCOL}${input.writer}`];
    socket = new WebSocket(grant.url, offered);
  } catch (error) {
    // An address that this page may not even try, such as ws: from https:.
    queueMicrotask(() => lost(error instanceof Error ? error.message : undefined));
    return { say: () => {}, sendInput: () => {}, hangUp: end };
  }
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    if (over) return socket.close();
    askRegularly();
    const size = options.size();
    if (size) say({ type: "resize", ...size });
    options.onOpen();
  };
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (over) return;
    arrived += 1;
    if (typeof data === "string") {
      const frame = readServerFrame(data);
      if (frame) onFrame(frame);
      return;
    }
    options.onBytes(data.byteLength);
    const own = credit;
    options.display.write(new Uint8Array(data), () => {
      const bytes = own.done(data.byteLength);
      if (bytes !== undefined && own === credit) say({ type: "ack", bytes });
    });
  };
  socket.onclose = ({ code, reason }) =>
    lost(reason || (code === 1006 ? undefined : `It was closed with code ${code}.`));
  return {
    say,
    sendInput,
    hangUp() {
      end();
      // Closing one that is not open yet would be reported as a fault of the page; `onopen` closes it.
      if (socket.readyState === WebSocket.OPEN) socket.close(1000);
    },
  };
}

/** A gateway that answers here is there; then it was the upgrade that failed. */
async function askHealth(
  terminalUrl: string,
  unneeded: AbortSignal,
): Promise<{ reachable: boolean; detail?: string }> {
  const url = new URL(terminalUrl);
  url.protocol = url.protocol.replace(/^ws/, "http");
  url.pathname = url.pathname.endsWith(TERMINAL_PATH)
    ? `${url.pathname.slice(0, -TERMINAL_PATH.length)}/healthz`
    : "/healthz";
  const signal = AbortSignal.any([unneeded, AbortSignal.timeout(CHECK_ROUTE_MS)]);
  const ask = { cache: "no-store", credentials: "omit", signal } as const;
  try {
    const answer = await fetch(url, ask);
    // Also a site of the same origin, such as the api itself, may answer here.
    const isGateway = answer.headers.get(LISTENER_HEADER) === gatewayListeners.public;
    if (!isGateway) return { reachable: false, detail: notTheGateway(url) };
    if (answer.ok) return { reachable: true };
    return { reachable: false, detail: `${url} answered ${answer.status}.` };
  } catch {
    // A gateway lets every page read this; what another server says stays hidden, but not that it says something.
    return fetch(url, { ...ask, mode: "no-cors" }).then(
      () => ({ reachable: false, detail: notTheGateway(url) }),
      () => ({ reachable: false, detail: `${url} gave this page no answer.` }),
    );
  }
}

const notTheGateway = (url: URL) => `What answers at ${url} is not the terminal gateway.`;
