// Sends a message as mail. The message id is that of the delivery, so that a repetition can be recognised.

import type { Notification } from "@holdfast/contracts/public/notification";
import { deliveryHeaders } from "@holdfast/contracts/public/notification";
import type { Values } from "@holdfast/kit/settings";
import type { notifySettings } from "../settings.ts";
import type { Outcome } from "./outcome.ts";
import { shortened } from "./outcome.ts";

type MailSettings = Pick<
  Values<typeof notifySettings>,
  "smtpHost" | "smtpPort" | "smtpTls" | "smtpUser" | "smtpPassword" | "notifyMailFrom"
>;

export type Mailer = { send(to: string, id: string, message: Notification): Promise<Outcome> };

/** Undefined: this installation cannot send mail. */
export function openMailer(settings: MailSettings, { timeLimitMs }: { timeLimitMs: number }): Mailer | undefined {
  const { smtpHost: host, smtpPort: port, smtpTls, smtpUser, smtpPassword, notifyMailFrom: from } = settings;
  if (host === undefined || from === undefined) return undefined;
  return {
    async send(to, id, message) {
      // Loaded with the first mail: most processes never send one.
      const { createTransport } = await import("nodemailer");
      const transport = createTransport({
        ...{ host, port, secure: smtpTls === "tls", requireTLS: smtpTls === "starttls" },
        ignoreTLS: smtpTls === "none",
        ...(smtpUser === undefined ? {} : { auth: { user: smtpUser, pass: smtpPassword ?? "" } }),
        ...{ connectionTimeout: timeLimitMs, greetingTimeout: timeLimitMs, socketTimeout: timeLimitMs },
        ...{ dnsTimeout: timeLimitMs, disableFileAccess: true, disableUrlAccess: true },
      });
      try {
        const sent = await transport.sendMail({
          from: { name: "Holdfast", address: from },
          to: { name: "", address: to },
          subject: subjectOf(message),
          text: textOf(message),
          messageId: `<${id}@${from.split("@").at(-1)}>`,
          headers: {
            [deliveryHeaders.id]: id,
            [deliveryHeaders.event]: message.event,
            "auto-submitted": "auto-generated",
          },
        });
        return { delivered: sent.accepted.length > 0, answer: shortened(sent.response) };
      } finally {
        transport.close();
      }
    },
  };
}

function subjectOf({ title, severity, organization }: Notification): string {
  const where = organization ? ` (${organization.slug})` : "";
  return `[Holdfast] ${severity ? `${severity}: ` : ""}${title}${where}`;
}

function textOf({ text, nodes, node_count, url }: Notification): string {
  const more = node_count - nodes.length;
  return [
    text,
    ...(nodes.length > 1
      ? ["", ...nodes.map(({ name }) => `- ${name}`), ...(more > 0 ? [`and ${more} more`] : [])]
      : []),
    ...(url ? ["", url] : []),
    "",
  ].join("\n");
}
