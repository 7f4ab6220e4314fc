// Keeps the certificates of the proxy in front fresh: gets them, writes them where it reads them, tells it so, and
// again when half of their life is over. Whatever fails is tried again; the files that are there stay.

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
/** Below this it is time that somebody looks. */
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
        log.info({ directory: settings.directory, names, not_after: new Date(notAfter) }, "has new certificates");
        tellProxy(settings.pidFile, log);
        await pause((present.notAfter - present.notBefore) / 2, signal);
      } catch (error) {
        if (signal.aborted) return;
        const serious = present !== undefined && present.notAfter - Date.now() < SERIOUS_MS;
        const details = { reason: (error as Error).message, not_after: present && new Date(present.notAfter) };
        log[serious ? "error" : "warn"](details, "no new certificates from the api; it is asked again");
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

/** Once, for whoever starts the proxy only then. */
export async function getCertificates(settings: IngressSettings): Promise<IngressIdentity> {
  return renew(check(settings), AbortSignal.timeout(30_000));
}

function check(settings: IngressSettings): IngressSettings & { token: string } {
  const { token } = settings;
  if (token === undefined) {
    throw new UsageError(`${ingressSettings.token.env} is not set: the api is given the same.`);
  }
  return { ...settings, token };
}

async function renew(settings: ReturnType<typeof check>, signal: AbortSignal): Promise<IngressIdentity> {
  const { directory, apiUrl, token, name } = settings;
  const identity = await enroll({ apiUrl, token, name, signal });
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  // For the owner and the group of the directory: a proxy in a container of its own reads them by its group.
  for (const file of ["listener", "ingress", "trust"] as const) {
    writeFileDurably(join(directory, `${file}.pem`), identity[file], 0o640);
  }
  return identity;
}

/** Its workers of before go on with what they have; what comes next meets the new certificates. */
function tellProxy(pidFile: string | undefined, log: Log): void {
  if (pidFile === undefined) return;
  const pid = Number(readFileIfPresent(pidFile)?.trim());
  if (!Number.isSafeInteger(pid) || pid < 1) {
    log.info({ pid_file: pidFile }, "nginx does not run yet: it reads the certificates when it starts");
    return;
  }
  try {
    // A pid file may outlive its process, and the number be another's by now.
    const called = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
    if (called !== "nginx") throw new Error(`process ${pid} is ${called}`);
    process.kill(pid, "SIGHUP");
  } catch (error) {
    log.warn({ reason: (error as Error).message }, "nginx was not told: reload it (nginx -s reload)");
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return wait(ms, undefined, { signal }).catch(() => undefined);
}
