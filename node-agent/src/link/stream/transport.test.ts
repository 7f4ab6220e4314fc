import { EventEmitter } from "node:events";
import { streamCloseCodes } from "@holdfast/contracts/node/stream";
import { expect, it } from "vitest";
import { LinkFailure } from "../failures.ts";
import { DialFailure } from "./dial.ts";
import { createTransport, type Transport } from "./transport.ts";

const noStreamHere = new DialFailure(
  new LinkFailure({ kind: "no_answer", code: "ECONNRESET", message: "the upgrade was cut" }, {}),
  true,
);
const unreachable = new DialFailure(
  new LinkFailure({ kind: "no_answer", code: "ECONNREFUSED", message: "nothing listens" }, {}),
  false,
);

it("TASK-02 tries a stream every 30 s while an outage lasts, and ever less often where streams are refused", async () => {
  const clock = { now: 0 };
  let failure = noStreamHere;
  let dialled = 0;
  const transport = createTransport({
    http: { send: () => Promise.reject(failure), wait: () => Promise.reject(failure) },
    dial: () => {
      dialled += 1;
      return Promise.reject(failure);
    },
    now: () => clock.now,
  });
  const dialsAfter = async (ms: number) => {
    clock.now += ms;
    dialled = 0;
    await transport.wait({ seconds: 1 } as Parameters<typeof transport.wait>[0]).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    return dialled;
  };
  expect(await dialsAfter(0)).toBe(1);
  expect(transport.used()?.kind).toBe("poll");
  failure = unreachable;
  for (let minute = 0; minute < 10; minute += 0.5) expect(await dialsAfter(30_000)).toBe(1);
  failure = noStreamHere;
  expect(await dialsAfter(30_000)).toBe(1);
  expect(await dialsAfter(30_000), "the second refusal: a minute").toBe(0);
  expect(await dialsAfter(30_000)).toBe(1);
  transport.close();
});

it("AGENT-06 knows this host's end of its connection, of a stream and of requests alone", async () => {
  const query = { seconds: 60, room: 0, holding: [], signal: new AbortController().signal };
  const socket = Object.assign(new EventEmitter(), { send() {}, close() {}, ping() {}, terminate() {} });
  const below = { localAddress: "10.0.0.7", bytesRead: 0 };
  const streaming = createTransport({
    http: { send: () => Promise.reject(noStreamHere), wait: () => Promise.reject(noStreamHere) },
    dial: async () => ({ socket, below }) as never,
  });
  void streaming.wait(query);
  await expect.poll(() => streaming.used()).toMatchObject({ kind: "stream", localAddress: "10.0.0.7" });
  streaming.close();

  const answer = { body: {}, sentAt: 0, receivedAt: 0, localAddress: "10.0.0.8" };
  const polling = createTransport({
    http: { send: async () => answer as never, wait: () => Promise.reject(unreachable) },
    dial: undefined,
  });
  await polling.send({ call: "sendHeartbeat", method: "POST", path: "/heartbeat", timeoutMs: 1 });
  expect(polling.used()).toMatchObject({ kind: "poll", localAddress: "10.0.0.8" });
  polling.close();
});

const query = () => ({ seconds: 60, room: 0, holding: [], signal: new AbortController().signal });
const socketOf = () => Object.assign(new EventEmitter(), { send() {}, close() {}, ping() {}, terminate() {} });

it("ID-10 polls for a while when somebody else has opened a stream with its ids, so that they do not displace each other", async () => {
  const sockets: EventEmitter[] = [];
  let polls = 0;
  const clock = { now: 0 };
  const transport = createTransport({
    http: {
      send: () => Promise.reject(noStreamHere),
      wait: async () => {
        polls += 1;
        return { body: { tasks: [], cancel: [] }, sentAt: 0, receivedAt: 0 };
      },
    },
    dial: async () => {
      const socket = socketOf();
      sockets.push(socket);
      return { socket, below: { localAddress: undefined, bytesRead: 0 } } as never;
    },
    now: () => clock.now,
  });
  await transport.wait(query());
  const waiting = transport.wait(query());
  await new Promise((resolve) => setImmediate(resolve));
  sockets[0]?.emit("close", streamCloseCodes.superseded);
  expect((await waiting).body).toMatchObject({ beat: true });
  await transport.wait(query());
  expect([sockets.length, polls]).toEqual([1, 1]);
  clock.now += 30_000;
  await transport.wait(query());
  await expect.poll(() => sockets.length).toBe(2);
  transport.close();
});

it("AGENT-06 opens a stream again at once when its own poll, which arrived after it, has superseded it", async () => {
  const sockets: EventEmitter[] = [];
  const held = Promise.withResolvers<Awaited<ReturnType<Transport["wait"]>>>();
  let refuses = true;
  const clock = { now: 0 };
  const transport = createTransport({
    http: { send: async () => ({}) as never, wait: () => held.promise },
    dial: async () => {
      if (refuses) throw noStreamHere;
      // As the server does when the same agent waits anew.
      if (sockets.length === 1) held.resolve({ body: { tasks: [], cancel: [] }, sentAt: 0, receivedAt: 0 });
      await new Promise((resolve) => setImmediate(resolve));
      const socket = socketOf();
      sockets.push(socket);
      return { socket, below: { localAddress: undefined, bytesRead: 0 } } as never;
    },
    now: () => clock.now,
  });
  await transport.send({ call: "sendHeartbeat", method: "POST", path: "/heartbeat", timeoutMs: 1 });
  refuses = false;
  clock.now += 30_000;
  const polled = transport.wait(query());
  await expect.poll(() => transport.used()).toMatchObject({ kind: "stream" });
  sockets[0]?.emit("close", streamCloseCodes.superseded);
  await polled;
  await expect.poll(() => sockets.length).toBe(2);
  // No poll was sent beside this one: whoever supersedes it is somebody else.
  sockets[1]?.emit("close", streamCloseCodes.superseded);
  await transport.send({ call: "sendHeartbeat", method: "POST", path: "/heartbeat", timeoutMs: 1 });
  expect(sockets).toHaveLength(2);
  transport.close();
});

it("ID-10 a heartbeat that the server asks for is sent at once", async () => {
  const socket = socketOf();
  const transport = createTransport({
    http: { send: () => Promise.reject(noStreamHere), wait: () => Promise.reject(noStreamHere) },
    dial: async () => ({ socket, below: { localAddress: undefined, bytesRead: 0 } }) as never,
  });
  expect((await transport.wait(query())).body.beat).toBe(true);
  const waiting = transport.wait(query());
  await expect.poll(() => socket.listenerCount("message")).toBe(1);
  socket.emit("message", JSON.stringify({ beat: true }));
  expect((await waiting).body.beat).toBe(true);
  transport.close();
});

it("ID-05 dials again at once when the identity was replaced while a stream was refused", async () => {
  const refused = Promise.withResolvers<never>();
  let dialled = 0;
  const transport = createTransport({
    http: { send: () => Promise.reject(unreachable), wait: () => Promise.reject(unreachable) },
    dial: () => {
      dialled += 1;
      return dialled === 1 ? refused.promise : Promise.reject(unreachable);
    },
  });
  const waiting = transport.wait(query());
  transport.renew();
  const code = "cert_expired";
  refused.reject(
    new DialFailure(new LinkFailure({ kind: "answer", status: 401, code, excerpt: "expired" }, {}), true),
  );
  await expect(waiting, "the failure is that of the new identity").rejects.toBe(unreachable);
  expect(dialled).toBe(2);
  transport.close();
});
