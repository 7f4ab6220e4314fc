// How long each part of opening a terminal waits. The operator sets one number, the promised time: within it a terminal
// is ready or an error says why not. Every limit is derived from it here, so that each part gives up before the part that
// waits for it, and the one that knows the reason has time to report it:
//
//   agent  <  api  <  promised time  <  gateway  <  client
//
// No schema library here: the agent and the page read it too.

/** What HOLDFAST_TERMINAL_OPEN_SECONDS may be. The longest stays below the timeout of the task. */
export const PROMISED_SECONDS = { least: 2, default: 15, most: 29 } as const;

/** A token is good for one connection within this time; the promised time starts when it is used. */
export const TOKEN_SECONDS = 60;

/** The task queue ends the task that opens a terminal after this time, whatever the agent does. */
export const TASK_TIMEOUT_SECONDS = 30;

/** The agent gives up so much before the time in its task is over, so that the reason still reaches the api. */
const AGENT_MARGIN_MS = 1_500;
/** Below this no stream could be opened at all; a task with less time gets this much. */
const AGENT_LEAST_MS = 1_000;
/** The api reports the reason so much before the promised time is over. */
const API_MARGIN_MS = 500;
/** The gateway waits so much longer than promised: the api keeps the promise, and its reason has to travel. */
const GATEWAY_MARGIN_MS = 750;
/** A request to the api may take so much longer: the deadline of the terminal ends it before, and is the one that is reported. */
const GATEWAY_REQUEST_MARGIN_MS = 5_000;
/** A client waits so much longer than promised: the frame of the gateway has to travel. */
const CLIENT_MARGIN_MS = 2_000;
/** The part of the promised time in which the client's WebSocket has to open; the rest is for finding out why it did not. */
const CLIENT_CONNECT_SHARE = 0.6;

/** A stream that the agent reported as open has this long to reach the gateway. */
export const STREAM_AFTER_TASK_MS = 2_000;
/** One connection attempt of the agent, as long as nothing at all is received. */
export const STREAM_HANDSHAKE_MS = 10_000;
/** The same from a gateway that passes the stream on to another one; the agent must still get the refusal of the first. */
export const RELAY_HANDSHAKE_MS = 4_000;
/** A client's request for a token, for which nothing is promised yet. */
export const TOKEN_REQUEST_MS = 17_000;
/** A client's question whether the gateway answers at its address. */
export const ROUTE_CHECK_MS = 4_000;
/** The same question before a reconnection, with everything around it. */
export const PROBE_MS = 5_000;

/** `leftMs`: until the promised time is over. */
export const apiWaitMs = (leftMs: number) => leftMs - API_MARGIN_MS;

/** The time that a task gives the agent, in whole seconds. */
export const taskSeconds = (leftMs: number) => Math.max(1, Math.floor(apiWaitMs(leftMs) / 1_000));

/** `withinMs`: as the task says. */
export const agentWaitMs = (withinMs: number) => Math.max(AGENT_LEAST_MS, withinMs - AGENT_MARGIN_MS);

export const gatewayWaitMs = (promisedSeconds: number) => promisedSeconds * 1_000 + GATEWAY_MARGIN_MS;
export const gatewayRequestMs = (promisedSeconds: number) => promisedSeconds * 1_000 + GATEWAY_REQUEST_MARGIN_MS;

export const clientWaitMs = (promisedSeconds: number) => promisedSeconds * 1_000 + CLIENT_MARGIN_MS;
export const clientConnectMs = (promisedSeconds: number) => promisedSeconds * 1_000 * CLIENT_CONNECT_SHARE;
