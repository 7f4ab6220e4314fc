// The gateway's link to the api: enrolled, announced, following its news, for as long as the gateway runs. Failures
// are retried; open terminals keep working meanwhile.

import { setTimeout as wait } from "node:timers/promises";
import type { AnswerOf, BodyInputOf, Endpoint } from "@holdfast/contracts/endpoint";
import { announceGateway, type ServiceNews } from "@holdfast/contracts/internal/endpoints";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Log } from "@holdfast/service/log";
import { ApiUnreachable, type Ask, type Connections, connect } from "./client.ts";
import { clientTls, type EnrollOptions, enroll, type ServiceIdentity } from "./enroll.ts";
import { followNews } from "./news.ts";

export type Announced = AnswerOf<typeof announceGateway>;

export type ApiLink = {
  instanceId: string;
  /** Throws ApiError or ApiUnreachable. */
  ask<E extends Endpoint>(endpoint: E, options: Ask<E>): Promise<AnswerOf<E>>;
  /** Resolves with the first accepted announcement. */
  whenAnnounced: Promise<void>;
  isEnrolled(): boolean;
  /** The api has answered the latest announcement. */
  isAnnounced(): boolean;
  /** The api's last response to an announcement; undefined before the first. */
  announced(): Announced | undefined;
  /** Announces that the gateway stops, so that nobody is sent to it. Requests are still possible. */
  leave(withinMs: number): Promise<void>;
  stop(): void;
};

export type LinkOptions = Omit<EnrollOptions, "signal"> & {
  announcement(): Omit<BodyInputOf<typeof announceGateway>, "instance_id">;
  /** A new identity, and the api's response to its first announcement. */
  onIdentity(identity: ServiceIdentity, announced: Announced): void;
  /** The api's response to every announcement. */
  onAnnounced(announced: Announced): void;
  /** News arrive from now on; earlier news may have been missed. */
  onListening(): void;
  onNews(news: ServiceNews): void;
  log: Log;
};

const ANNOUNCE_MS = 10_000;
const again: BackoffPolicy = { firstMs: 50, maxMs: 5_000 };
/** Short at first: both usually start together, and `holdfast up` waits until they are connected. */
const eagerly: BackoffPolicy = { firstMs: 50, maxMs: 100 };
const EAGER_ATTEMPTS = 60;

export function linkToApi(options: LinkOptions): ApiLink {
  const { apiUrl, instanceId, log } = options;
  const stopped = new AbortController();
  const { signal } = stopped;
  let connections: Connections | undefined;
  let identity: ServiceIdentity | undefined;
  let announced: Announced | undefined;
  let present = false;
  const firstTime = Promise.withResolvers<void>();

  const renewIfDue = async (): Promise<ServiceIdentity | undefined> => {
    // Also after an announcement that failed: the api may have another CA by now.
    if (identity && present && untilDue(identity) > 0) return undefined;
    identity = await enroll({ ...options, signal });
    connections?.retire();
    connections = connect(apiUrl, clientTls(identity));
    return identity;
  };

  const ask: ApiLink["ask"] = async (endpoint, request) => {
    if (!connections) throw new ApiUnreachable("not enrolled yet");
    return connections.ask(endpoint, request);
  };
  const announce = () =>
    ask(announceGateway, { body: { instance_id: instanceId, ...options.announcement() }, signal });

  const keepAnnounced = async () => {
    for (let failures = 0; !signal.aborted; ) {
      try {
        const renewed = await renewIfDue();
        announced = await announce();
        options.onAnnounced(announced);
        if (renewed) {
          options.onIdentity(renewed, announced);
          log.info({ not_after: new Date(renewed.notAfter) }, "enrolled with the api");
        }
        present = true;
        firstTime.resolve();
        failures = 0;
        await pause(Math.min(ANNOUNCE_MS, identity ? untilDue(identity) : 0), signal);
      } catch (error) {
        if (signal.aborted) return;
        if (present || failures === 0)
          log.warn({ reason: reasonOf(error) }, "the api did not accept this gateway's announcement");
        present = false;
        const eager = identity === undefined && failures < EAGER_ATTEMPTS;
        await pause(backoffDelay(eager ? eagerly : again, failures), signal);
        failures += 1;
      }
    }
  };

  const keepListening = async () => {
    for (let failures = 0; !signal.aborted; failures += 1) {
      if (connections && present) {
        await followNews({
          api: connections,
          signal,
          onOpen: () => {
            failures = 0;
            options.onListening();
          },
          onNews: options.onNews,
        }).catch((error: unknown) =>
          log.debug({ reason: reasonOf(error) }, "the connection for the api's news has ended"),
        );
      }
      await pause(backoffDelay({ firstMs: 100, maxMs: 2_000 }, failures), signal);
    }
  };

  void keepAnnounced();
  void keepListening();

  return {
    instanceId,
    ask,
    whenAnnounced: firstTime.promise,
    isEnrolled: () => identity !== undefined && Date.now() < identity.notAfter,
    isAnnounced: () => present,
    announced: () => announced,
    async leave(withinMs) {
      stopped.abort();
      const body = { instance_id: instanceId, ...options.announcement(), leaving: true };
      await ask(announceGateway, { body, timeoutMs: withinMs }).catch((error: unknown) =>
        log.debug({ reason: reasonOf(error) }, "the api does not know that this gateway stops"),
      );
    },
    stop() {
      stopped.abort();
      connections?.close();
    },
  };
}

/** Until half of its lifetime is over. */
function untilDue({ notBefore, notAfter }: ServiceIdentity): number {
  return Math.max(0, (notBefore + notAfter) / 2 - Date.now());
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return wait(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
