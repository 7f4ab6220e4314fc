// A real Redis of the test's own, on a free port of loopback, which can be stopped, emptied, frozen and started again.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { createClient } from "@redis/client";
import { atEnd } from "../lifetime/at-end.ts";
import { freePorts } from "../processes/free-ports.ts";

export type TestRedis = {
  url: string;
  /** Every key with its value. */
  content(): Promise<Record<string, string>>;
  set(key: string, value: string): Promise<void>;
  /** Until the end of the test file. */
  follow(channel: string, onMessage: (message: string) => void): Promise<void>;
  /** Milliseconds until a key expires; negative: never. */
  expiryMs(key: string): Promise<number>;
  flush(): Promise<void>;
  /** Ends the connections of everybody else. */
  dropConnections(): Promise<void>;
  /** Ends the process; nothing of it is kept. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** It keeps its connections, and answers nothing. */
  freeze(): void;
  thaw(): void;
};

const PASSWORD = "a-password-of-the-test";

const newClient = (url: string) => createClient({ url, socket: { reconnectStrategy: false } });
type Client = ReturnType<typeof newClient>;

export async function startTestRedis(): Promise<TestRedis> {
  const [port] = await freePorts<[number]>(1);
  const url = `redis://:${PASSWORD}@127.0.0.1:${port}`;
  let child: ChildProcess | undefined;

  const withClient = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const client = newClient(url);
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await work(client);
    } finally {
      client.destroy();
    }
  };
  const redis: TestRedis = {
    url,
    content: () =>
      withClient(async (client) => {
        const keys = await client.keys("*");
        const values = await Promise.all(keys.map((key) => client.get(key)));
        return Object.fromEntries(keys.map((key, index) => [key, values[index] ?? ""]));
      }),
    set: async (key, value) => void (await withClient((client) => client.set(key, value))),
    async follow(channel, onMessage) {
      const client = newClient(url);
      client.on("error", () => undefined);
      await client.connect();
      await client.subscribe(channel, onMessage);
      atEnd(() => client.destroy());
    },
    expiryMs: (key) => withClient((client) => client.pTTL(key)),
    dropConnections: async () =>
      void (await withClient((client) => client.sendCommand(["CLIENT", "KILL", "TYPE", "normal"]))),
    flush: async () => void (await withClient((client) => client.flushAll())),
    async start() {
      child = spawn(
        "/usr/bin/redis-server",
        [
          ...["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
          ...["--requirepass", PASSWORD, "--daemonize", "no", "--dir", "/tmp"],
        ],
        { stdio: "ignore" },
      );
      while (!(await withClient((client) => client.ping()).catch(() => undefined))) await wait(20);
    },
    async stop() {
      const stopping = child;
      child = undefined;
      if (!stopping) return;
      const gone = once(stopping, "exit");
      stopping.kill("SIGKILL");
      await gone;
    },
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
  };
  await redis.start();
  atEnd(() => redis.stop());
  return redis;
}
