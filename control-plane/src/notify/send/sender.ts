// Sends one message to one receiver, whatever its kind, and says what became of it. Never throws: whoever sends has to go on
// with the next one.

import type { Notification } from "@holdfast/contracts/public/notification";
import type { Values } from "@holdfast/kit/settings";
import type { notifySettings } from "../settings.ts";
import { allowanceOf, parseWebhookUrl, resolveAllowed } from "./addresses.ts";
import { type Mailer, openMailer } from "./mail.ts";
import { failureOf, NO_ANSWER, type Outcome } from "./outcome.ts";
import { requestOutside } from "./request.ts";
import { signedHeaders } from "./signature.ts";

export type Target =
  | {
      kind: "webhook";
      url: string;
      secret: string;
      /** By the operator of the installation, who may send to any address. */
      trusted?: true;
    }
  | { kind: "mail"; to: string };

export type Sender = {
  send(target: Target, id: string, message: Notification): Promise<Outcome>;
  /** Throws AddressRefused if messages must not be sent there. */
  check(url: string): Promise<URL>;
  /** Whether mail can be sent at all. */
  hasMail: boolean;
};

export const TIME_LIMIT_MS = 10_000;
/** For all of it, of which the resolution of names and several steps of mail have limits of their own. */
const LONGEST_TIMES = 3;

export function createSender(settings: Values<typeof notifySettings>, timeLimitMs = TIME_LIMIT_MS): Sender {
  const allowance = allowanceOf(settings.notifyAllowPrivate);
  const everywhere = allowanceOf(["0.0.0.0/0", "::/0"]);
  const mailer: Mailer | undefined = openMailer(settings, { timeLimitMs });

  const sendWebhook = async (
    { url: text, secret, trusted }: Extract<Target, { kind: "webhook" }>,
    id: string,
    message: Notification,
  ): Promise<Outcome> => {
    const url = parseWebhookUrl(text);
    const addresses = await resolveAllowed(url, trusted ? everywhere : allowance);
    const body = JSON.stringify({ id, ...message });
    const headers = {
      "content-type": "application/json",
      ...signedHeaders({ id, event: message.event, body }, secret, Date.now()),
    };
    return requestOutside({ url, addresses, method: "POST", headers, body, timeLimitMs });
  };

  return {
    hasMail: mailer !== undefined,
    async check(text) {
      const url = parseWebhookUrl(text);
      await resolveAllowed(url, allowance);
      return url;
    },
    async send(target, id, message) {
      try {
        if (target.kind === "webhook") return await inTime(sendWebhook(target, id, message), timeLimitMs);
        if (mailer) return await inTime(mailer.send(target.to, id, message), timeLimitMs);
        return { delivered: false, answer: "This installation cannot send mail: HOLDFAST_SMTP_HOST is not set." };
      } catch (error) {
        return failureOf(error);
      }
    },
  };
}

/** Whoever sends waits for all that it sends: one that never ends would hold up the rest. */
async function inTime(sending: Promise<Outcome>, timeLimitMs: number): Promise<Outcome> {
  const late = Promise.withResolvers<Outcome>();
  const timer = setTimeout(() => late.resolve(NO_ANSWER), LONGEST_TIMES * timeLimitMs);
  try {
    return await Promise.race([sending, late.promise]);
  } finally {
    clearTimeout(timer);
    sending.catch(() => undefined);
  }
}
