// Messages as receivers get them: over real connections, to servers that behave as servers do.

import { createHmac } from "node:crypto";
import type { Notification } from "@holdfast/contracts/public/notification";
import { Notification as NotificationSchema } from "@holdfast/contracts/public/notification";
import { readSettings } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import { testMessage } from "../src/notify/message.ts";
import { requestOutside } from "../src/notify/send/request.ts";
import { createSender, type Target } from "../src/notify/send/sender.ts";
import { notifySettings } from "../src/notify/settings.ts";
import { type MailServer, startMailServer } from "./support/mail-server.ts";

let server: WebhookServer;
let mail: MailServer;
const login = { user: "holdfast", password: "of-the-mail-server" };
const now = new Date("2026-01-02T03:04:05Z");
const message: Notification = testMessage({ id: uuidv7(), slug: "ours", name: "Ours" }, now);
const secret = `hfw_${"s".repeat(43)}`;

beforeAll(async () => {
  server = await startWebhookServer();
  mail = await startMailServer(login);
});
beforeEach(() => {
  server.received = [];
  server.answer = (response) => response.end("thank you");
});

const senderWith = (env: Record<string, string> = {}, timeLimitMs = 5_000) =>
  createSender(readSettings(notifySettings, { HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1", ...env }), timeLimitMs);
const webhook = (url = server.url): Target => ({ kind: "webhook", url, secret });

describe("a webhook", () => {
  it("DRIFT-16 gets a message that whoever knows the secret can verify", async () => {
    const id = uuidv7();
    expect(await senderWith().send(webhook(), id, message)).toEqual({ delivered: true, answer: "200 thank you" });
    const [{ headers, body, url } = { headers: {}, body: "", url: "" }] = server.received;
    expect(url).toBe("/hooks/secret-path");
    expect(headers).toMatchObject({
      ...{ "content-type": "application/json", "x-holdfast-delivery": id, "x-holdfast-event": "receiver.test" },
    });
    const timestamp = headers["x-holdfast-timestamp"];
    const expected = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
    expect(headers["x-holdfast-signature"]).toBe(`v1=${expected}`);
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(60);
    const { id: sent, ...rest } = JSON.parse(body) as { id: string };
    expect(sent).toBe(id);
    expect(NotificationSchema.parse(rest)).toEqual(message);
  });

  it("SEC-04 is not followed to another place", async () => {
    server.answer = (response) => response.writeHead(302, { location: `${server.url}/elsewhere` }).end("moved");
    expect(await senderWith().send(webhook(), uuidv7(), message)).toEqual({
      delivered: false,
      answer: "302 (redirects are not followed) moved",
    });
    expect(server.received).toHaveLength(1);
  });

  it("SEC-04 is connected to at the address that was checked, whatever its name means by then", async () => {
    const url = new URL(`http://receiver.invalid:${server.port}/x`);
    const outcome = await requestOutside({ url, addresses: ["127.0.0.1"], method: "GET", timeLimitMs: 5_000 });
    expect(outcome.delivered).toBe(true);
    expect(server.received[0]?.headers.host).toBe(`receiver.invalid:${server.port}`);
  });

  it("SEC-04 is not reached at a private address that nobody allowed", async () => {
    const sender = createSender(readSettings(notifySettings, {}));
    const outcome = await sender.send(webhook(), uuidv7(), message);
    expect(outcome).toEqual({ delivered: false, answer: "AddressRefused: 127.0.0.1 is not a public address." });
    expect((await sender.send(webhook(`http://localhost:${server.port}`), uuidv7(), message)).delivered).toBe(
      false,
    );
    expect(server.received).toEqual([]);
    // The operator's own is.
    expect((await sender.send({ ...webhook(), trusted: true } as Target, uuidv7(), message)).delivered).toBe(true);
  });

  it("DRIFT-16 that does not answer in time has not got it", async () => {
    server.answer = () => undefined;
    expect(await senderWith({}, 100).send(webhook(), uuidv7(), message)).toEqual({
      delivered: false,
      answer: "No answer in time.",
    });
    server.answer = (response) => void response.writeHead(200).write("begins");
    expect(await senderWith({}, 100).send(webhook(), uuidv7(), message)).toMatchObject({ delivered: false });
  });

  it("SEC-03 leaves a short excerpt of its answer, without secrets and control characters", async () => {
    server.answer = (response) => response.writeHead(500).end(`no\u0007 ${secret}\n${"x".repeat(100_000)}`);
    const { delivered, answer } = await senderWith().send(webhook(), uuidv7(), message);
    expect(delivered).toBe(false);
    expect(answer).toMatch(/^500 no hfw_\[redacted\] x{100,}…$/);
    expect(answer.length).toBeLessThan(220);
  });

  it("DRIFT-16 that nobody listens at has not got it", async () => {
    const outcome = await senderWith().send(webhook("http://127.0.0.1:1/x"), uuidv7(), message);
    expect(outcome).toEqual({ delivered: false, answer: expect.stringContaining("ECONNREFUSED") as string });
  });
});

describe("a mail", () => {
  const settings = () => ({
    ...{ HOLDFAST_SMTP_HOST: "127.0.0.1", HOLDFAST_SMTP_PORT: String(mail.port), HOLDFAST_SMTP_TLS: "none" },
    ...{ HOLDFAST_SMTP_USER: login.user, HOLDFAST_SMTP_PASSWORD: login.password },
    HOLDFAST_NOTIFY_MAIL_FROM: "holdfast@example.com",
  });
  const send = (env: Record<string, string>, id = uuidv7(), what = message) =>
    senderWith(env).send({ kind: "mail", to: "ops@example.com" }, id, what);

  it("DRIFT-16 says what happened, under the id of the delivery", async () => {
    const id = uuidv7();
    const named = { ...message, title: "P0\r\nBcc: all@example.com", severity: "P0" } as const;
    expect(await send(settings(), id, named)).toMatchObject({ delivered: true });
    const [got] = mail.mails.splice(0);
    expect(got).toMatchObject({ from: "holdfast@example.com", to: ["ops@example.com"], user: login.user });
    expect(got?.text).toMatch(/^Subject: \[Holdfast\] P0: P0\s+Bcc: all@example.com \(ours\)\r$/m);
    expect(got?.text).toMatch(new RegExp(`^Message-ID: <${id}@example.com>\r$`, "m"));
    expect(got?.text).toMatch(new RegExp(`^X-Holdfast-Delivery: ${id}\r$`, "im"));
    expect(got?.text).toContain("This is a test of Holdfast.");
  });

  it("DRIFT-16 that the server refuses was not delivered", async () => {
    mail.refuse = { code: 550, message: "no such user" };
    expect(await send(settings())).toEqual({ delivered: false, answer: expect.stringContaining("550") as string });
    delete mail.refuse;
    const wrong = await send({ ...settings(), HOLDFAST_SMTP_PASSWORD: "another" });
    expect(wrong.delivered).toBe(false);
    expect(wrong.answer).not.toContain("another");
  });

  it("SEC-03 is not sent without TLS unless that was set", async () => {
    const { HOLDFAST_SMTP_TLS: _, ...strict } = settings();
    expect((await send(strict)).delivered).toBe(false);
    expect(mail.mails).toEqual([]);
  });

  it("DRIFT-16 cannot be sent without a server", async () => {
    expect(await send({})).toMatchObject({
      delivered: false,
      answer: expect.stringContaining("HOLDFAST_SMTP_HOST"),
    });
  });
});
