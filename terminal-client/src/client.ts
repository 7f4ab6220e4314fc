// A client of one terminal: carries out what state.ts decides, with a socket and a clock. Output does not pass through the
// decisions: bytes go from the socket to the display as they come.

import { MOST_INPUT_BYTES, type ServerFrame, type Size } from "@holdfast/contracts/terminal/frames";
import { type Connection, openConnection } from "./connection.ts";
import type { Display, Environment, OutputStart } from "./environment.ts";
import { failureOfRefusal } from "./failures.ts";
import { createTerminalInput, type TerminalInput } from "./input.ts";
import { alarmOf, begin, step } from "./state.ts";
import type { Effect, Event, Grant, Next, State } from "./states.ts";

export type TerminalClient<Bytes extends Uint8Array> = {
  state(): State;
  /**
   * Kept until the shell has it, also while it cannot be reached. False: too much waits already, and it was not accepted.
   * `typed: false` is not counted as a person's input.
   */
  write(bytes: Bytes, options?: { typed: boolean }): boolean;
  /** Bytes of input that are not acknowledged. */
  waiting(): number;
  /** Typed bytes of which nobody confirmed that they reached the shell. */
  unconfirmed(): number;
  resize(size: Size): void;
  /** At once, whatever is under way. */
  tryAgain(): void;
  /** No more tries by itself. */
  stop(): void;
  openNew(): void;
  /** The network may be back, or somebody looks at the terminal again. */
  nudge(): void;
  /** The shell keeps running. Nothing happens afterwards. */
  leave(): void;
};

export type ClientOptions<Bytes extends Uint8Array> = {
  /** The shell to return to; undefined: a new one. */
  shell: string | undefined;
  environment: Environment<Bytes>;
  display: Display<Bytes>;
  /** After every change; the first state is `state()`. */
  onState(state: State): void;
  /** The shell confirmed some of the input. */
  onAcknowledged?(): void;
};

export function openTerminalClient<Bytes extends Uint8Array>(
  options: ClientOptions<Bytes>,
): TerminalClient<Bytes> {
  const { environment, display } = options;
  const now = () => performance.now();
  const first = begin(options.shell, now());
  let { state } = first;
  let connection: Connection | undefined;
  let request = new AbortController();
  let alarm: ReturnType<typeof setTimeout> | undefined;
  let size: Size | undefined;
  /** What the display shows, and how far. */
  let shown: { shell: string; offset: number } | undefined;
  /** What was typed for the shell of that id. */
  let typed: { shell: string; input: TerminalInput<Bytes> } | undefined;
  let hasLeft = false;

  const apply = (event: Event) => {
    if (!hasLeft) follow(step(state, event));
  };

  const follow = (next: Next) => {
    const isChanged = next.state !== state;
    state = next.state;
    for (const effect of next.effects) carryOut(effect);
    clearTimeout(alarm);
    const at = alarmOf(state);
    // Timers may fire a moment early by the other clock.
    if (at !== undefined)
      alarm = setTimeout(() => apply({ type: "alarm", at: Math.max(at, now()) }), Math.max(0, at - now()));
    if (isChanged) options.onState(state);
  };

  const carryOut = (effect: Effect) => {
    switch (effect.do) {
      case "request_token":
        return void requestToken(effect.shell);
      case "connect":
        return connect(effect.grant);
      case "check_route":
        return void checkRoute(effect.url);
      case "disconnect":
        request.abort();
        connection?.close();
        connection = undefined;
        return;
      case "report":
        return environment.report(effect.sessionId, effect.failure);
    }
  };

  /** At most one request is under way: the next ends the one before. */
  const newRequest = () => {
    request.abort();
    request = new AbortController();
    return request.signal;
  };

  const requestToken = async (shell: string | undefined) => {
    const signal = newRequest();
    const offset = shown?.shell === shell ? shown?.offset : undefined;
    try {
      const grant = await environment.requestToken({ shell, offset, signal });
      if (!signal.aborted) apply({ type: "granted", grant, at: now() });
    } catch (error) {
      const failure = failureOfRefusal(error, environment.describeError);
      if (!signal.aborted) apply({ type: "refused", failure, at: now() });
    }
  };

  const checkRoute = async (url: string) => {
    const signal = newRequest();
    const { reachable, detail } = await environment.checkRoute(url, signal);
    if (!signal.aborted) apply({ type: "checked", reachable, detail, at: now() });
  };

  const connect = (grant: Grant) => {
    if (typed?.shell !== grant.sessionId)
      typed = { shell: grant.sessionId, input: createTerminalInput<Bytes>(MOST_INPUT_BYTES) };
    connection = openConnection<Bytes>({
      grant,
      openSocket: environment.openSocket,
      input: typed.input,
      size: () => size,
      onOpen: () => apply({ type: "opened", at: now() }),
      onFrame(frame) {
        if (frame.type === "ready") startOutput(frame);
        apply({ type: "frame", frame, at: now() });
      },
      onBytes(bytes, done) {
        if (shown) shown.offset += bytes.length;
        display.write(bytes, done);
      },
      onAcknowledged: () => options.onAcknowledged?.(),
      onClose(detail) {
        connection = undefined;
        apply({ type: "closed", detail, at: now() });
      },
      onSilent: () => apply({ type: "silent", at: now() }),
    });
  };

  const startOutput = ({ session_id, offset, replay }: Extract<ServerFrame, { type: "ready" }>) => {
    const relation = relationOf(shown, { shell: session_id, offset });
    shown = { shell: session_id, offset };
    display.start(relation, replay);
  };

  follow(first);
  return {
    state: () => state,
    write(bytes, how) {
      if (!typed || !hasShell(state)) return true;
      const isAccepted = typed.input.add(bytes, how);
      connection?.sendInput();
      return isAccepted;
    },
    waiting: () => typed?.input.waiting() ?? 0,
    unconfirmed: () => typed?.input.unconfirmed() ?? 0,
    resize(next) {
      size = next;
      connection?.send({ type: "resize", ...next });
    },
    tryAgain: () => apply({ type: "try_again", at: now() }),
    stop: () => apply({ type: "stop", at: now() }),
    openNew: () => apply({ type: "new_shell", at: now() }),
    nudge: () => apply({ type: "nudge", at: now() }),
    leave() {
      hasLeft = true;
      clearTimeout(alarm);
      request.abort();
      connection?.close();
    },
  };
}

type Position = { shell: string; offset: number };

function relationOf(shown: Position | undefined, next: Position): OutputStart {
  if (!shown) return "first";
  if (shown.shell !== next.shell || next.offset < shown.offset) return "replaced";
  return next.offset === shown.offset ? "continued" : "gap";
}

/** There is one, although it may not be reachable at the moment. */
function hasShell(state: State): boolean {
  if ("round" in state) return state.round.shell !== undefined;
  return "lost" in state || state.phase === "ready" || state.phase === "unresponsive";
}
