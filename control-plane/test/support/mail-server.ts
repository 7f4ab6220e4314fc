// A receiver of mail, as it is outside: keeps what it gets.

import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export type MailServer = {
  port: number;
  mails: { from: string; to: string[]; text: string; user: string | undefined }[];
  /** Refuses with this; undefined: accepts. */
  refuse?: { code: number; message: string };
};

export async function startMailServer(login?: { user: string; password: string }): Promise<MailServer> {
  const server: MailServer = { port: 0, mails: [] };
  const smtp = new SMTPServer({
    ...{ logger: false, disableReverseLookup: true, disabledCommands: ["STARTTLS"], allowInsecureAuth: true },
    authOptional: login === undefined,
    onAuth({ username, password }, _session, callback) {
      if (username === login?.user && password === login?.password) callback(null, { user: username });
      else callback(new Error("wrong password"));
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { refuse } = server;
        if (refuse) {
          callback(Object.assign(new Error(refuse.message), { responseCode: refuse.code }));
          return;
        }
        const { mailFrom, rcptTo } = session.envelope;
        server.mails.push({
          from: mailFrom ? mailFrom.address : "",
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
          user: session.user as string | undefined,
        });
        callback();
      });
    },
  });
  await new Promise<void>((resolve) => void smtp.listen(0, "127.0.0.1", resolve));
  atEnd(() => new Promise<void>((resolve) => smtp.close(() => resolve())));
  server.port = (smtp.server.address() as AddressInfo).port;
  return server;
}
