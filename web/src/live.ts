// Live updates from the server while the page is open: one WebSocket per tab names what
// changed, and the affected queries are refetched. Without it pages poll every few seconds.

import { LIVE_PATH, LiveMessage } from "@holdfast/contracts/public/live";
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { onReachChange } from "./connection.ts";
import { createStore } from "./store.ts";

type LiveState = "connecting" | "live" | "down";

const state = createStore<LiveState>("connecting");

export function useLiveState(): LiveState {
  return useSyncExternalStore(state.subscribe, state.get);
}

/** Live, a lost message and the age of heartbeats are made up for now and then; otherwise this is all there is. */
export function useRefetchInterval(): number {
  return useLiveState() === "live" ? 20_000 : 5_000;
}

/**
 * Whether what is shown under a key may look different after a message. Keys are
 * `["org", org, noun, id, …]` for one thing and `["org", org, noun, "list", filters]` for many; the noun is the topic's
 * name or its plural.
 */
export function concerns(message: LiveMessage, key: QueryKey): boolean {
  const [, , noun, which, filters] = key;
  // A token shows the node that came of it.
  if (noun === "enrollment-tokens") return message.topic === "node";
  if (message.topic === "verdict") return noun === "nodes" && message.ids.includes(String(which));
  if (message.topic === "fleet") return noun === "fleet" || (noun === "nodes" && which === "list");
  // A node shows how many tasks it runs.
  if (noun === "nodes" && message.topic === "task")
    return which === "list" || message.node_ids.includes(String(which));
  // An agent shows how many steps it runs.
  if (noun === "agents" && message.topic === "execution") return true;
  if (noun !== message.topic && noun !== `${message.topic}s`) return false;
  if (which !== "list") return message.ids.includes(String(which));
  const node = (filters as { node_id?: string } | undefined)?.node_id;
  return !node || message.node_ids.includes(node);
}

/** Messages may come by the hundred; what is shown is read again at most this often. */
const gatherMs = 100;
const tryAgainMs = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** A connection that held so long was a good one: the next attempt comes soon. */
const settledMs = 10_000;
/** A server that restarts is usually back within this time, so it is not shown. */
const graceMs = 2_500;

type Connection = { orgId: string; onMessages: (messages: LiveMessage[]) => Promise<void>; onOpen: () => void };

function connect({ orgId, onMessages, onOpen }: Connection): () => void {
  let socket: WebSocket | undefined;
  let attempt = 0;
  let ended = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let grace: ReturnType<typeof setTimeout> | undefined;
  let waiting: LiveMessage[] = [];
  let delivering = false;

  const deliver = async () => {
    if (delivering) return;
    delivering = true;
    while (waiting.length > 0 && !ended) {
      const messages = waiting;
      waiting = [];
      await onMessages(messages);
      await new Promise((resolve) => setTimeout(resolve, gatherMs));
    }
    delivering = false;
  };

  const open = () => {
    clearTimeout(retry);
    let openedAt = Number.POSITIVE_INFINITY;
    const origin = window.location.origin.replace(/^http/, "ws");
    const opened = new WebSocket(`${origin}${LIVE_PATH}?${new URLSearchParams({ org_id: orgId })}`);
    socket = opened;
    opened.onopen = () => {
      // Closing one that is not open yet would be reported as a fault of the page.
      if (ended) return opened.close();
      openedAt = Date.now();
      clearTimeout(grace);
      grace = undefined;
      state.set("live");
      onOpen();
    };
    opened.onmessage = ({ data }) => {
      const message = parse(data);
      if (message) waiting.push(message);
      void deliver();
    };
    opened.onclose = () => {
      socket = undefined;
      if (ended) return;
      if (Date.now() - openedAt > settledMs) attempt = 0;
      grace ??= setTimeout(() => state.set("down"), graceMs);
      const pause = tryAgainMs[Math.min(attempt++, tryAgainMs.length - 1)] ?? 0;
      // So that not all tabs of all people reconnect at the same time after a restart.
      retry = setTimeout(open, pause * (0.75 + Math.random() / 2));
    };
  };

  const openNow = () => {
    if (!socket && !ended) open();
  };
  const stopWatching = onReachChange((reach) => reach === "reached" && openNow());
  const onVisible = () => document.visibilityState === "visible" && openNow();
  document.addEventListener("visibilitychange", onVisible);
  state.set("connecting");
  open();
  return () => {
    ended = true;
    clearTimeout(retry);
    clearTimeout(grace);
    stopWatching();
    document.removeEventListener("visibilitychange", onVisible);
    if (socket?.readyState === WebSocket.OPEN) socket.close();
  };
}

function parse(data: unknown): LiveMessage | undefined {
  try {
    return LiveMessage.safeParse(JSON.parse(String(data))).data;
  } catch {
    return undefined;
  }
}

/** For the shell: while it is mounted, the tab is subscribed to one organization. */
export function useLive(orgId: string | undefined): void {
  const queryClient = useQueryClient();
  useEffect(() => {
    if (!orgId) return;
    const inOrg = ["org", orgId];
    return connect({
      orgId,
      onMessages: (messages) =>
        queryClient.invalidateQueries({
          queryKey: inOrg,
          predicate: ({ queryKey }) => messages.some((message) => concerns(message, queryKey)),
        }),
      // Refetches what may have changed while there was no connection.
      onOpen: () => void queryClient.invalidateQueries({ queryKey: inOrg }),
    });
  }, [orgId, queryClient]);
}
