// How many requests an agent may send while it is rate limited, counted where they arrive. By what the agent promises: between
// two tries it waits half to all of 10, 20, 40 and then 60 seconds. A stream is tried beside them, at first after 30 seconds and
// then after twice as long each time. Nothing else is sent.

import { STREAM_PATH } from "@holdfast/contracts/node/stream";

const FIRST_SECONDS = 10;
const LONGEST_SECONDS = 60;
const STREAM_SECONDS = 30;
/** A try takes time itself, and the lapse of time is seen in whole seconds. */
const SLACK_SECONDS = 5;

/** Undefined: as many as there may be. */
export function requestProblem(paths: readonly string[], seconds: number): string | undefined {
  const count = (end: string) => paths.filter((path) => path.endsWith(end)).length;
  const [heartbeats, streams] = [count("/heartbeat"), count(STREAM_PATH)];
  const [least, most] = [Math.floor(seconds / (LONGEST_SECONDS + SLACK_SECONDS)), mostTries(seconds)];
  const text = `${heartbeats} heartbeats and ${streams} streams of ${paths.length} requests in ${Math.round(seconds)} s`;
  if (heartbeats < least) return `${text}: fewer than ${least} tries, so the agent would notice the end too late`;
  if (heartbeats > most) return `${text}: more than ${most} tries`;
  if (streams > mostStreams(seconds)) return `${text}: more than ${mostStreams(seconds)} tries of a stream`;
  return heartbeats + streams < paths.length ? `${text}: others were sent, too` : undefined;
}

function mostTries(seconds: number): number {
  let tries = 0;
  for (let [at, pause] = [0, FIRST_SECONDS]; at <= seconds; pause = Math.min(2 * pause, LONGEST_SECONDS)) {
    tries += 1;
    at += pause / 2;
  }
  return tries;
}

function mostStreams(seconds: number): number {
  let tries = 0;
  for (let [at, pause] = [0, STREAM_SECONDS]; at <= seconds; pause *= 2) {
    tries += 1;
    at += pause;
  }
  return tries;
}
