// Sends one mail by SMTP, to an address that was checked. What the server says after the message was handed over decides.

import { isIP, Socket } from "node:net";
import { Readable } from "node:stream";
import { ConnectorFailure, type MailAnswer, type MailMessage } from "../actions.ts";
import { connectionFailure, resolvedOrRefused } from "./failures.ts";
import type { SendOptions } from "./http.ts";

type SmtpError = Error & { code?: string; responseCode?: number };

export async function sendMail(message: MailMessage, { network, signal }: SendOptions): Promise<MailAnswer> {
  const { server, password, from, to, cc, subject, text, messageId } = message;
  const { host, port, tls, user } = server;
  const [address] = await resolvedOrRefused(
    () =>
      network.addressesOf({
        host,
        encrypted: tls !== "none",
        advice: "Use tls or starttls for a public address.",
      }),
    signal,
  );
  // Loaded with the first mail: most processes never send one.
  const { createTransport } = await import("nodemailer");
  // Ours, so that it can be closed: nodemailer would go on with a mail that nobody waits for any more, for as long as the server likes.
  const socket = new Socket();
  const transport = createTransport({
    // The address that was checked, and not the name again.
    ...{
      host: address as string,
      port,
      socket,
      secure: tls === "tls",
      requireTLS: tls === "starttls",
      ignoreTLS: tls === "none",
    },
    ...(isIP(host) === 0 ? { tls: { servername: host } } : {}),
    ...(user === undefined ? {} : { auth: { user, pass: password ?? "" } }),
    ...{ disableFileAccess: true, disableUrlAccess: true },
  });
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined);
  const stop = () => {
    socket.destroy();
    stopped.reject(signal.reason);
  };
  signal.addEventListener("abort", stop, { once: true });
  /** The server may have the mail from the moment on when its text is read: signed in, and before that nothing of it is sent. */
  let begun = false;
  const content = new Readable({
    read() {
      begun = true;
      this.push(text);
      this.push(null);
    },
  });
  try {
    const named = (one: string) => ({ name: "", address: one });
    const mail = { from: named(from), to: to.map(named), cc: cc.map(named), subject, text: content, messageId };
    const sending = transport.sendMail({ ...mail, headers: { "auto-submitted": "auto-generated" } });
    sending.catch(() => undefined);
    const sent = await Promise.race([sending, stopped.promise]);
    return {
      accepted: sent.accepted.map(String),
      rejected: sent.rejected.map(String),
      ...{ messageId: sent.messageId, response: sent.response },
    };
  } catch (error) {
    throw signal.aborted
      ? connectionFailure(error, { connected: begun, signal })
      : failureOf(error as SmtpError, begun, signal);
  } finally {
    signal.removeEventListener("abort", stop);
    transport.close();
  }
}

function failureOf(error: SmtpError, begun: boolean, signal: AbortSignal): ConnectorFailure {
  const { code, responseCode } = error;
  if (code === "ETLS") return new ConnectorFailure("unreachable", "The mail server offers no TLS.");
  // Without an answer of the server, silence after the text says nothing.
  if (responseCode === undefined) return connectionFailure(error, { connected: begun, signal });
  const detail = `The mail server answered ${responseCode}.`;
  if (code === "EAUTH") return new ConnectorFailure("secret_refused", detail);
  const later = responseCode >= 400 && responseCode < 500;
  return new ConnectorFailure(later ? "service_failed" : "request_refused", detail);
}
