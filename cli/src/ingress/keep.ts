// Renews the certificates of the proxy in front: requests them, writes them to its directory, reloads it, and
// repeats at half of their lifetime. A failure is retried; the existing files stay in place.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import { enroll, type IngressIdentity } from "./enroll.ts";
import { ingressSettings } from "./settings.ts";

type IngressSettings = Values<typeof ingressSettings>;

const again: BackoffPolicy = { firstMs: 500, maxMs: 60_000 };
/** With less time left, failures are logged as errors. */
const SERIOUS_MS = 24 * 60 * 60_000;

export async function keepCertificates(settings: IngressSettings, log: Log): Promise<RunningProcess> {
  const checked = check(settings);
  const stopped = new AbortController();
  const { signal } = stopped;
  let present: IngressIdentity | undefined;

  const run = async () => {
    for (let failures = 0; !signal.aborted; ) {
      try {
        present = await renew(checked, signal);
        failures = 0;
        const { names, notAfter } = present;
        log.info(
          { directory: settings.directory, names, not_after: new Date(notAfter) },
          "wrote new certificates",
        );
        reloadProxy(settings.pidFile, log);
        await pause((present.notAfter - present.notBefore) / 2, signal);
      } catch (error) {
        if (signal.aborted) return;
        const serious = present !== undefined && present.notAfter - Date.now() < SERIOUS_MS;
        const details = { reason: (error as Error).message, not_after: present && new Date(present.notAfter) };
        log[serious ? "error" : "warn"](details, "could not get new certificates from the api; retrying");
        await pause(backoffDelay(again, failures), signal);
        failures += 1;
      }
    }
  };
  const ran = run();
  return {
    ports: {},
    async stop() {
      stopped.abort();
      await ran;
    },
  };
}

/** Once, before the proxy starts. */
export async function getCertificates(settings: IngressSettings): Promise<IngressIdentity> {
  return renew(check(settings), AbortSignal.timeout(30_000));
}

function check(settings: IngressSettings): IngressSettings & { token: string } {
  const { token } = settings;
  if (token === undefined) {
    throw new UsageError(`${ingressSettings.token.env} is not set. Set it to the same value as on the api.`);
  }
  return { ...settings, token };
}

async function renew(settings: ReturnType<typeof check>, signal: AbortSignal): Promise<IngressIdentity> {
  const { directory, apiUrl, token, name } = settings;
  const identity = await enroll({ apiUrl, token, name, signal });
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  // Readable by the directory's owner and group: a proxy in its own container reads them through its group.
  for (const file of ["listener", "ingress", "trust"] as const) {
    writeFileDurably(join(directory, `${file}.pem`), identity[file], 0o640);
  }
  return identity;
}

/** Old nginx workers finish with the old certificates; new connections get the new ones. */
function reloadProxy(pidFile: string | undefined, log: Log): void {
  if (pidFile === undefined) return;
  const pid = Number(readFileIfPresent(pidFile)?.trim());
  if (!Number.isSafeInteger(pid) || pid < 1) {
    log.info({ pid_file: pidFile }, "nginx is not running yet; it reads the certificates when it starts");
    return;
  }
  try {
    // A pid file may outlive its process, and the pid may belong to another process by now.
    const called = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
    if (called !== "nginx") throw new Error(`process ${pid} is ${called}`);
    process.kill(pid, "SIGHUP");
  } catch (error) {
    log.warn({ reason: (error as Error).message }, "could not reload nginx; run: nginx -s reload");
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return wait(ms, undefined, { signal }).catch(() => undefined);
}
