// Downloads one file, and goes on where an earlier attempt stopped: after a broken connection, and after a restart of the agent. What
// the server says about the file is not trusted: whoever uses the file verifies its digest. Only addresses that the owner
// of the host allows are connected to, redirects included.

import { statSync, truncateSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { backoffDelay } from "@holdfast/kit/backoff";
import { isErrno, readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { TaskFailed } from "@holdfast/tasks/executor";
import { http } from "../../http-module.ts";
import { DownloadState } from "../record.generated.ts";

export type Download = {
  url: string;
  /** What was received so far; `<path>.json` keeps what identifies the file on the server. */
  path: string;
  isAllowed: (url: string) => boolean;
  /** Bytes that may be added to the file system. */
  room: () => number;
  onProgress: (progress: { received_bytes: number; total_bytes: number | null }) => void;
  signal: AbortSignal;
  /** Between attempts; tests do not wait. */
  pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
};

const MOST_REDIRECTS = 5;
/** In a row, without a byte received. */
const MOST_FAILURES = 6;
const IDLE_MS = 60_000;
const between = { firstMs: 1_000, maxMs: 30_000 };

/** It may work later: what was received is kept. */
class Broken extends Error {}

/** Where the attempt that succeeded began; 0: nothing of an earlier one was used. */
export async function download(file: Download): Promise<{ resumedFrom: number }> {
  const { path, signal, pause = wait } = file;
  for (let failures = 0; ; ) {
    signal.throwIfAborted();
    const before = sizeOf(path);
    try {
      await attempt(file, before);
      return { resumedFrom: before };
    } catch (error) {
      signal.throwIfAborted();
      if (isErrno(error, "ENOSPC")) throw diskFull(`${path}: ${(error as Error).message}`);
      if (!(error instanceof Broken)) throw error;
      failures = sizeOf(path) > before ? 0 : failures + 1;
      if (failures >= MOST_FAILURES)
        throw new TaskFailed("vm_image_source_unreachable", `${file.url}: ${error.message}`);
      await pause(backoffDelay(between, failures), signal);
    }
  }
}

/** Drops what was received, and what is known of the file on the server. */
export function startOver(path: string): void {
  removeIfPresent(stateFile(path));
  removeIfPresent(path);
}

async function attempt(file: Download, have: number): Promise<void> {
  const { path } = file;
  const known = readState(path);
  const response = await open(file, have, known);
  const { statusCode: status = 0 } = response;
  if (status === 416) {
    response.destroy();
    if (known?.total_bytes === have) return;
    startOver(path);
    throw new Broken("the file on the server is smaller than what was received of it");
  }
  const part = status === 206 ? contentRange(response) : undefined;
  if (status === 206 && (part?.from !== have || (known?.total_bytes ?? part.total) !== part.total)) {
    response.destroy();
    startOver(path);
    throw new Broken("the server sent another part than the one requested");
  }
  // The whole file: it has changed, or the server sends no parts.
  if (status === 200 && have > 0) truncateSync(path);
  const from = status === 206 ? have : 0;
  const total = part ? part.total : lengthOf(response);
  writeState(path, { validator: validatorOf(response), total_bytes: total });
  const missing = total === null ? 0 : total - from;
  const room = file.room();
  if (missing > room) {
    response.destroy();
    throw diskFull(`${mib(missing)} MiB are still to be fetched, and ${mib(room)} MiB are free.`);
  }
  await receive(file, response, { from, total });
}

async function receive(
  file: Download,
  response: IncomingMessage,
  { from, total }: { from: number; total: number | null },
): Promise<void> {
  let received = from;
  file.onProgress({ received_bytes: received, total_bytes: total });
  // Each chunk is in the file before the next one is read: after a broken connection, its size says what was received.
  const target = await openFile(file.path, "a", 0o600);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (total !== null && received + chunk.length > total)
        throw new Broken("the server sent more than it announced");
      if (total === null && chunk.length > file.room()) throw diskFull("The file system is full.");
      await target.appendFile(chunk);
      received += chunk.length;
      file.onProgress({ received_bytes: received, total_bytes: total });
    }
    await target.sync();
  } catch (error) {
    response.destroy();
    if (error instanceof TaskFailed || error instanceof Broken || isErrno(error, "ENOSPC")) throw error;
    throw new Broken(`the connection broke after ${received} bytes: ${(error as Error).message}`);
  } finally {
    await target.close();
  }
  if (total !== null && received !== total)
    throw new Broken(`the connection ended after ${received} of ${total} bytes`);
}

type State = NonNullable<ReturnType<typeof readState>>;

/** Follows redirects. Resolves with 200, 206 or 416. */
async function open(file: Download, have: number, known: State | undefined): Promise<IncomingMessage> {
  let url = file.url;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
    if (!file.isAllowed(url))
      throw new TaskFailed("vm_image_source_refused", `${url} is not in HOLDFAST_VM_IMAGE_SOURCES of this host.`);
    const response = await request(url, rangeOf(have, known), file.signal);
    const { statusCode: status = 0 } = response;
    if (status === 200 || (have > 0 && (status === 206 || status === 416))) return response;
    response.destroy();
    const { location } = response.headers;
    if (status >= 300 && status < 400 && location !== undefined) {
      url = URL.canParse(location, url) ? new URL(location, url).href : location;
      continue;
    }
    if (status >= 500 || status === 429 || status === 408) throw new Broken(`the server responded with ${status}`);
    throw new TaskFailed("vm_image_source_failed", `${url}: the server responded with ${status}.`);
  }
  throw new TaskFailed("vm_image_source_failed", `${file.url} redirects more than ${MOST_REDIRECTS} times.`);
}

/** With `if-range`, a file that has changed since is sent whole. */
function rangeOf(have: number, known: State | undefined): Record<string, string> {
  if (have === 0) return {};
  const validator = known?.validator ?? undefined;
  return { range: `bytes=${have}-`, ...(validator === undefined ? {} : { "if-range": validator }) };
}

async function request(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { get } = url.startsWith("https:") ? process.getBuiltinModule("node:https") : http;
  return new Promise((resolve, reject) => {
    const sent = get(
      url,
      { headers: { ...headers, "accept-encoding": "identity" }, signal, agent: false },
      resolve,
    );
    sent.setTimeout(IDLE_MS, () => sent.destroy(new Error(`nothing was received for ${IDLE_MS / 1000} s`)));
    sent.on("error", (error) => reject(new Broken(error.message)));
  });
}

function contentRange({ headers }: IncomingMessage): { from: number; total: number | null } | undefined {
  const found = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers["content-range"] ?? "");
  if (!found) return undefined;
  return { from: Number(found[1]), total: found[2] === "*" ? null : Number(found[2]) };
}

function lengthOf({ headers }: IncomingMessage): number | null {
  const length = headers["content-length"];
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
}

/** A weak entity tag may stand for several files. */
function validatorOf({ headers }: IncomingMessage): string | null {
  const { etag, "last-modified": modified } = headers;
  const usable = etag !== undefined && !etag.startsWith("W/") ? etag : modified;
  return usable !== undefined && usable.length <= 500 ? usable : null;
}

const stateFile = (path: string) => `${path}.json`;

function readState(path: string) {
  try {
    const text = readFileIfPresent(stateFile(path));
    return text === undefined ? undefined : DownloadState.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function writeState(path: string, state: State): void {
  writeFileDurably(stateFile(path), `${JSON.stringify(state)}\n`, 0o600);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const mib = (bytes: number) => Math.ceil(bytes / 1024 ** 2);
const diskFull = (message: string) => new TaskFailed("vm_image_disk_full", message);

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  const { setTimeout } = await import("node:timers/promises");
  await setTimeout(ms, undefined, { signal });
}
