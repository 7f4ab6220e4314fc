// The stand-in is a real SMTP server on loopback.

import { type AddressInfo, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { SMTPServer } from "smtp-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectorSuite, run, SECRET, type Service } from "../suite.ts";

type Mail = { from: string; to: string[]; user: unknown; content: string };
type Options = { refuseRecipient?: string; dataCode?: number; cutAtEnd?: boolean };

async function mailServer({ refuseRecipient, dataCode, cutAtEnd }: Options = {}) {
  const mails: Mail[] = [];
  const sockets = new Set<{ destroy(): void }>();
  const refusal = (code: number) => Object.assign(new Error("refused"), { responseCode: code });
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    authOptional: true,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      username === "bot" && password === SECRET ? done(null, { user: username }) : done(refusal(535)),
    onRcptTo: ({ address }, _session, done) => (address === refuseRecipient ? done(refusal(550)) : done()),
    async onData(stream, { envelope, user }, done) {
      const content = await text(stream);
      const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address;
      mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), user, content });
      if (cutAtEnd) for (const socket of sockets) socket.destroy();
      else if (dataCode) done(refusal(dataCode));
      else done();
    },
  });
  server.on("error", () => undefined);
  server.server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.server.address() as AddressInfo;
  return { mails, server: { host: "127.0.0.1", port, tls: "none", user: "bot" } };
}

const message = {
  from: "runs@example.com",
  to: ["ops@example.com"],
  cc: ["lead@example.com"],
  subject: "Disk full: œ",
  text: "On east-1.\n.\nEnd",
};
async function open(): Promise<Service> {
  const { mails, server } = await mailServer();
  return {
    arrived: () => mails.length,
    transcript: () => JSON.stringify(mails),
    input: { server },
    secret: SECRET,
  };
}

connectorSuite("email", open, {
  send: {
    input: message,
    output: {
      messageId: expect.stringMatching(/^<[0-9a-f]{32}@example\.com>$/),
      accepted: ["ops@example.com", "lead@example.com"],
      rejected: [],
    },
    lineField: "subject",
  },
});

describe("the connector email", () => {
  const send = async (
    options: Options,
    more: { secret?: string | undefined; input?: object; key?: string } = {},
  ) => {
    const { mails, server } = await mailServer(options);
    const input = { server, ...message, ...more.input };
    const secret = "secret" in more ? more.secret : SECRET;
    const outcome = await run({
      connector: "email",
      action: "send",
      input,
      secret,
      idempotencyKey: more.key ?? "k",
    });
    return { outcome, mails };
  };

  it("FLOW-02 sends what it was given, with a Message-ID that follows from the idempotency key", async () => {
    const [one, again, other] = [await send({}), await send({}), await send({}, { key: "other" })];
    const { content, user, to } = one.mails[0] as Mail;
    expect([user, to]).toEqual(["bot", ["ops@example.com", "lead@example.com"]]);
    expect(content).toMatch(/^Subject: =\?UTF-8\?/m);
    const idOf = ({ mails }: { mails: Mail[] }) => /^Message-ID: (.+)$/m.exec(mails[0]?.content ?? "")?.[1];
    expect(idOf(again)).toBe(idOf(one));
    expect(idOf(other)).not.toBe(idOf(one));
  });

  it("SEC-02 reports a password that is not accepted, or missing", async () => {
    const wrong = await send({}, { secret: "another-Password-1" });
    expect(wrong.outcome).toMatchObject({ failure: { code: "secret_refused" }, outcomeKnown: true });
    expect(JSON.stringify(wrong.outcome)).not.toContain("another-Password-1");
    expect((await send({}, { secret: undefined })).outcome).toMatchObject({ failure: { code: "secret_missing" } });
    expect(wrong.mails).toEqual([]);
  });

  it("FLOW-01 returns the recipients that were refused; all of them are a failure", async () => {
    const some = await send({ refuseRecipient: "lead@example.com" });
    expect(some.outcome).toMatchObject({
      output: { accepted: ["ops@example.com"], rejected: ["lead@example.com"] },
    });
    const none = await send({ refuseRecipient: "ops@example.com" }, { input: { cc: [] } });
    expect(none.outcome).toMatchObject({ failure: { code: "request_refused" }, retryable: false });
  });

  it.for([
    [451, "service_failed", true, true],
    [554, "request_refused", false, true],
  ] as const)("FLOW-04 %i is %s", async ([dataCode, code, retryable, outcomeKnown]) => {
    expect((await send({ dataCode })).outcome).toMatchObject({ failure: { code }, retryable, outcomeKnown });
  });

  it("FLOW-04 a connection that ends after the message was handed over may have had its effect", async () => {
    const { outcome, mails } = await send({ cutAtEnd: true });
    expect(mails).toHaveLength(1);
    expect(outcome).toMatchObject({ failure: { code: "connection_lost" }, outcomeKnown: false });
  });

  it("SEC-04 does not send in the clear when STARTTLS was asked for", async () => {
    const { server, mails } = await mailServer();
    const input = { ...message, server: { ...server, tls: "starttls" } };
    const outcome = await run({ connector: "email", action: "send", input, secret: SECRET });
    expect(outcome).toMatchObject({ failure: { code: "unreachable" }, outcomeKnown: true });
    expect(mails).toEqual([]);
  });

  it.for(["tls", "starttls"] as const)(
    "SEC-04 sends nothing with %s to a server that nobody vouches for",
    async (tls) => {
      const mails: string[] = [];
      // With the certificate that everybody has who has this library.
      const server = new SMTPServer({
        secure: tls === "tls",
        authOptional: true,
        onAuth(_auth, _session, done) {
          mails.push("password");
          done(null, { user: "bot" });
        },
        onMailFrom(_address, _session, done) {
          mails.push("mail");
          done();
        },
      });
      server.on("error", () => undefined);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
      const { port } = server.server.address() as AddressInfo;
      const input = { ...message, server: { host: "127.0.0.1", port, tls, user: "bot" } };
      const outcome = await run({ connector: "email", action: "send", input, secret: SECRET });
      expect(outcome).toMatchObject({ failure: { code: "unreachable" }, outcomeKnown: true });
      expect(mails).toEqual([]);
    },
  );

  it("FLOW-04 closes the connection when it is cancelled, and so sends nothing later", async () => {
    const connected = Promise.withResolvers<Socket>();
    // It greets nobody.
    const silent = createServer(connected.resolve);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const input = { ...message, server: { host: "127.0.0.1", port, tls: "none" } };
    const cancelling = new AbortController();
    const sending = run({ connector: "email", action: "send", input, signal: cancelling.signal });
    const socket = await connected.promise;
    const said = text(socket);
    cancelling.abort();
    expect(await sending).toMatchObject({ failure: { code: "cancelled" }, outcomeKnown: true });
    socket.write("220 hello\r\n");
    expect(await said.catch(() => "")).toBe("");
  });

  it.for([
    { from: "a@b.c\r\nBcc: x@y.z" },
    { to: ["a@b.c, x@y.z"] },
    { to: ["<a@b.c>"] },
    { cc: ["a@b.c\nx"] },
    { to: [] },
  ])("SEC-04 takes no address such as %j", async (input) => {
    const { outcome, mails } = await send({}, { input });
    expect(outcome).toMatchObject({ failure: { code: "input_invalid" } });
    expect(mails).toEqual([]);
  });
});
