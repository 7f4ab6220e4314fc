// Reports that the database cannot be reached, without it: to the receivers of the installation, which are in the settings,
// and to those of organizations as they were when they were last read. What was sent is recorded when the database is
// back, and what was not accepted is then sent like any other message.

import type { Log } from "@holdfast/service/log";
import type { Sql, Tx } from "../../database/connect.ts";
import { insertDeliveries, type NewDelivery } from "../deliveries/queries.ts";
import { pauseAfter } from "../deliveries/retry.ts";
import { databaseMessage } from "../message.ts";
import type { Outcome } from "../send/outcome.ts";
import type { Sender, Target } from "../send/sender.ts";
import { nextOutage, type Outage, type OutageEvent, outageMessageId } from "./outage.ts";

export type KnownReceiver = {
  /** Distinguishes it from all others. */
  key: string;
  target: Target;
  receiver: { id: string; orgId: string } | null;
};

export type DatabaseWatch = {
  /** Looks at the database. Returns how many messages were sent. */
  look(): Promise<number>;
};

type Message = KnownReceiver & { id: string; attempts: number; attemptedAt: number; outcome?: Outcome };

export function watchDatabase(options: {
  /** Throws, or does not return in time, while the database cannot be reached. */
  probe(): Promise<unknown>;
  system: Sql;
  receivers(): readonly KnownReceiver[];
  sender: Pick<Sender, "send">;
  publicUrl: string | undefined;
  /** Called with the messages that are stored when the database is back. */
  onQueued(ids: readonly string[]): void;
  log: Log;
  now?: () => number;
  timeLimitMs?: number;
}): DatabaseWatch {
  const { system, sender, publicUrl, log, now = Date.now, timeLimitMs = 3_000 } = options;
  let outage: Outage = { state: "up" };
  /** Of the present outage. */
  let messages: Message[] = [];
  /** A statement that hangs is not followed by another. */
  let probing: Promise<boolean> | undefined;

  const isReachable = async (): Promise<boolean> => {
    probing ??= options
      .probe()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        probing = undefined;
      });
    const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), timeLimitMs).unref());
    return Promise.race([probing, late]);
  };

  const messageOf = (event: OutageEvent, since: number) =>
    databaseMessage(event, {
      ...{ began: new Date(since), publicUrl },
      recovered: event === "database.recovered" ? new Date(now()) : null,
    });

  /** Those that were not accepted yet, after growing pauses. */
  const sendDue = async (since: number): Promise<number> => {
    const due = messages.filter(({ outcome, attempts, attemptedAt }) => {
      const pause = attempts === 0 ? 0 : pauseAfter(attempts, { once: false });
      return !outcome?.delivered && pause !== undefined && now() - attemptedAt >= pause * 1000;
    });
    await Promise.all(
      due.map(async (one) => {
        one.attempts += 1;
        one.attemptedAt = now();
        one.outcome = await sender.send(one.target, one.id, messageOf("database.unreachable", since));
      }),
    );
    return due.length;
  };

  const recordOutage = async (since: number): Promise<void> => {
    const of = (event: OutageEvent): NewDelivery[] =>
      messages.map(({ key, receiver, target }) => ({
        ...{ id: outageMessageId(event, since, key), receiver, kind: target.kind, subject: "database" },
        message: messageOf(event, since),
      }));
    const queued = await system.begin(async (tx) => {
      await insertDeliveries(tx, of("database.unreachable"));
      await storeOutcomes(tx, messages);
      return insertDeliveries(tx, of("database.recovered"));
    });
    options.onQueued(queued);
  };

  return {
    async look() {
      const before = outage;
      const next = nextOutage(outage, { reachable: await isReachable(), now: now() });
      if (next.event === "database.unreachable" && next.outage.state === "down") {
        const { since } = next.outage;
        messages = options.receivers().map((one) => {
          return {
            ...one,
            id: outageMessageId("database.unreachable", since, one.key),
            attempts: 0,
            attemptedAt: 0,
          };
        });
        log.error({ since: new Date(since), receivers: messages.length }, "the database cannot be reached");
      }
      if (next.event === "database.recovered" && before.state === "down") {
        // If this fails, the outage goes on, and the next look records it.
        await recordOutage(before.since);
        log.info({ since: new Date(before.since) }, "the database can be reached again");
        messages = [];
      }
      outage = next.outage;
      return outage.state === "down" ? sendDue(outage.since) : 0;
    },
  };
}

/** Those that were accepted; the others are sent again, in their order. Another replica may have stored the same ones. */
async function storeOutcomes(tx: Tx, messages: readonly Message[]): Promise<void> {
  const delivered = messages.filter(({ outcome }) => outcome?.delivered);
  if (delivered.length === 0) return;
  await tx`
    UPDATE notification_deliveries d SET state = 'delivered', attempts = r.attempts, answer = r.answer,
      attempted_at = r.at, delivered_at = r.at
    FROM unnest(${delivered.map(({ id }) => id)}::uuid[], ${delivered.map(({ attempts }) => attempts)}::integer[],
      ${delivered.map(({ outcome }) => outcome?.answer ?? "")}::text[],
      ${delivered.map(({ attemptedAt }) => new Date(attemptedAt))}::timestamptz[]) AS r (id, attempts, answer, at)
    WHERE d.id = r.id AND d.state = 'pending'`;
}
