// Keeps an agent connected. Usually there is one link; while a gateway drains there are two: new work comes by the newer one,
// and the older one is closed when nothing is under way on it any more.

import type { Log } from "../log.ts";
import { type Link, type LinkOptions, type OwnedLink, openLink } from "./link.ts";
import { attemptAfter, delayAfter, type Ended, explainEnd } from "./pacing.ts";

export type ConnectionOptions = Omit<LinkOptions, "onFrame" | "onEnded"> & {
  onFrame(text: string, link: OwnedLink): void;
  /** Of a link. */
  onEnded(): void;
  /** Whether something that was given to the agent by this link has not ended. */
  isBusy(link: Link): boolean;
  random: () => number;
  log: Log;
};

export type Connection = {
  /** The newest link that is ready. */
  newest(): Link | undefined;
  links(): readonly Link[];
  /** The gateway has accepted the agent on this link. */
  accepted(link: OwnedLink): void;
  /** The gateway of this link is about to stop: another one is opened, and this one closed when it is no longer needed. */
  replace(link: OwnedLink): void;
  /** Closes links that are no longer needed. */
  tidy(): void;
  close(): void;
};

/** All agents of a gateway that drains are to connect elsewhere, but not in the same instant. */
const MOVE_WITHIN_MS = 1000;

export function keepConnected(options: ConnectionOptions): Connection {
  const { log, random } = options;
  /** Oldest first. */
  const links: OwnedLink[] = [];
  const replaced = new WeakSet<OwnedLink>();
  let attempt = 0;
  let dialling: NodeJS.Timeout | undefined;
  let closed = false;

  const dialAfter = (ms: number) => {
    if (closed || dialling) return;
    dialling = setTimeout(() => {
      dialling = undefined;
      dial();
    }, ms);
  };
  const dial = () => {
    const link: OwnedLink = openLink({
      ...options,
      onFrame: (text) => options.onFrame(text, link),
      onEnded: (ended) => {
        links.splice(links.indexOf(link), 1);
        options.onEnded();
        if (!closed && !replaced.has(link)) retry(link, ended);
      },
    });
    links.push(link);
  };
  const retry = (link: OwnedLink, ended: Ended) => {
    attempt = attemptAfter(ended, attempt, link.wasReady());
    const delayMs = delayAfter(ended, Math.max(0, attempt - 1), random());
    const { message, nextStep, isTokenRefused } = explainEnd(ended);
    const fields = { ...(nextStep ? { next_step: nextStep } : {}), next_attempt_in_ms: delayMs };
    log[isTokenRefused ? "error" : "warn"](`not connected: ${message}`, fields);
    dialAfter(delayMs);
  };
  const newest = () => links.findLast((link) => link.isReady());
  const tidy = () => {
    const used = newest();
    const older = used ? links.slice(0, links.indexOf(used)) : [];
    for (const link of older) if (!options.isBusy(link)) link.close();
  };

  dial();
  return {
    newest,
    links: () => links,
    accepted(link) {
      link.becomeReady();
      // The newest one gets new work, so that what is left of an older one is not waited for again.
      for (const other of links.slice(0, links.indexOf(link))) replaced.add(other);
      tidy();
    },
    replace(link) {
      if (replaced.has(link)) return;
      replaced.add(link);
      log.info("the gateway is about to stop: connecting to another one");
      dialAfter(random() * MOVE_WITHIN_MS);
    },
    tidy,
    close() {
      closed = true;
      clearTimeout(dialling);
      for (const link of [...links]) link.close();
    },
  };
}
