// A terminal's client on this page: what it needs of the browser. How a terminal comes up and is reconnected is in
// @holdfast/terminal-client.

import { ROUTE_CHECK_MS } from "@holdfast/contracts/terminal/deadlines";
import { openTerminalClient, type TerminalClient } from "@holdfast/terminal-client/client";
import type { Environment, OutputStart, RouteCheck, SocketEvents } from "@holdfast/terminal-client/environment";
import { askHealth, healthUrl, notTheGateway } from "@holdfast/terminal-client/route-check";
import type { State } from "@holdfast/terminal-client/states";
import { problemOf } from "../../problem.ts";
import { createStore, type Store } from "../../store.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** What bytes are shown on; screen.ts makes one of xterm.js. */
export type Display = {
  write(bytes: Uint8Array, shown: () => void): void;
  /** What comes next does not follow what is shown. */
  reset(): void;
  /** It would, but something in between is lost. */
  showLoss(): void;
  /** Until then, replies to queries in replayed output are not sent again. */
  muteUntilShown(bytes: number): void;
};

export type ConnectionOptions = Pick<Environment<Bytes>, "requestToken" | "report"> & {
  /** The shell to return to; undefined: a new one. */
  shell: string | undefined;
  /** A token is of no use before there is something to show output on. */
  display: Promise<Display>;
  /** The page was loaded before this gateway was announced: its policy knows only older ones. */
  onPolicyRefused(): void;
};

export type Connection = Omit<TerminalClient<Bytes>, "state"> & { state: Store<State> };

export function openConnection({ shell, display, onPolicyRefused, ...api }: ConnectionOptions): Connection {
  let screen: Display | undefined;
  const client = openTerminalClient<Bytes>({
    shell,
    environment: {
      async requestToken(wanted) {
        const [grant, made] = await Promise.all([api.requestToken(wanted), display]);
        screen = made;
        return grant;
      },
      report: api.report,
      openSocket: (url, protocols, events) => openSocket(url, protocols, { ...events, onPolicyRefused }),
      checkRoute,
      describeError(error) {
        const { message, nextStep: action } = problemOf(error);
        return { message, action, retryable: true };
      },
    },
    display: {
      start(relation: OutputStart, replay: number) {
        if (relation === "gap") screen?.showLoss();
        else if (relation === "replaced") screen?.reset();
        screen?.muteUntilShown(replay);
      },
      write: (bytes, shown) => screen?.write(bytes, shown),
    },
    onState: (next) => state.set(next),
  });
  const state = createStore(client.state());

  // What the browser says about the network is a hint to try; whether a terminal is connected, its socket says.
  const watching = new AbortController();
  window.addEventListener("online", client.nudge, watching);
  document.addEventListener("visibilitychange", () => document.hidden || client.nudge(), watching);
  return {
    ...client,
    state,
    leave() {
      watching.abort();
      client.leave();
    },
  };
}

type PageSocketEvents = SocketEvents<Bytes> & Pick<ConnectionOptions, "onPolicyRefused">;

function openSocket(url: string, protocols: string[], events: PageSocketEvents) {
  let isClosed = false;
  const onViolation = ({ effectiveDirective, blockedURI }: SecurityPolicyViolationEvent) => {
    const isOurs = effectiveDirective === "connect-src" && blockedURI.startsWith(new URL(url).origin);
    if (isOurs && !isClosed) events.onPolicyRefused();
  };
  const end = () => {
    isClosed = true;
    document.removeEventListener("securitypolicyviolation", onViolation);
  };
  document.addEventListener("securitypolicyviolation", onViolation);
  let socket: WebSocket;
  try {
    socket = new WebSocket(url, protocols);
  } catch (error) {
    // An address that this page may not even try, such as ws: from https:.
    queueMicrotask(() => {
      end();
      events.onClose(error instanceof Error ? error.message : undefined);
    });
    return { isOpen: () => false, send: () => {}, close: end };
  }
  socket.binaryType = "arraybuffer";
  socket.onopen = () => (isClosed ? socket.close() : events.onOpen());
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) =>
    typeof data === "string" ? events.onText(data) : events.onBytes(new Uint8Array(data));
  socket.onclose = ({ code, reason }) => {
    end();
    events.onClose(reason || (code === 1006 ? undefined : `It was closed with code ${code}.`));
  };
  return {
    isOpen: () => socket.readyState === WebSocket.OPEN,
    send: (data: string | Bytes) => socket.send(data),
    close() {
      end();
      // Closing one that is not open yet would be reported as a fault of the page; `onopen` closes it.
      if (socket.readyState === WebSocket.OPEN) socket.close(1000);
    },
  };
}

async function checkRoute(terminalUrl: string, unneeded: AbortSignal): Promise<RouteCheck> {
  const signal = AbortSignal.any([unneeded, AbortSignal.timeout(ROUTE_CHECK_MS)]);
  const request = { cache: "no-store", credentials: "omit", signal } as const;
  try {
    return await askHealth(terminalUrl, (url) => fetch(url, request));
  } catch {
    // A gateway lets every page read this; what another server says stays hidden, but not that it says something.
    const url = healthUrl(terminalUrl);
    return fetch(url, { ...request, mode: "no-cors" }).then(
      () => ({ reachable: false, detail: notTheGateway(url) }),
      () => ({ reachable: false, detail: `${url} gave this page no answer.` }),
    );
  }
}
