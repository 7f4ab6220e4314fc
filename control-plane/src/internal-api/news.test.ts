import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import { createLog } from "@holdfast/service/log";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createNews } from "./news.ts";

const log = createLog({ process: "test", level: "silent" });
const revoked = (node_id: string): ServiceNews => ({ type: "node_revoked", node_id });
const settle = () => new Promise((resolve) => setImmediate(resolve));

function follow(news: ReturnType<typeof createNews>) {
  const lines: ServiceNews[] = [];
  const controller = new AbortController();
  news.follow((line) => lines.push(line), controller.signal);
  return { lines, abort: () => controller.abort() };
}

describe("what gateways are sent", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it("begins with a sign of life and what was missed, and ends when the gateway goes", async () => {
    const news = createNews({ missed: async () => [revoked("a")], log });
    const gateway = follow(news);
    await settle();
    expect(gateway.lines).toEqual([{ type: "alive", at: expect.any(String) }, revoked("a")]);
    news.keepAlive();
    expect(gateway.lines).toHaveLength(3);
    gateway.abort();
    news.publish([revoked("b")]);
    expect(gateway.lines).toHaveLength(3);
  });

  it("has what is published under one key once, until it is forgotten", async () => {
    const news = createNews({ missed: async () => [], log });
    const { lines } = follow(news);
    const found = [{ key: "a at 1", line: revoked("a") }];
    const sent = () => lines.filter(({ type }) => type === "node_revoked").length;
    news.publishOnce(found);
    news.publishOnce(found);
    expect(sent()).toBe(1);
    news.publishOnce([...found, { key: "a at 2", line: revoked("a") }]);
    expect(sent()).toBe(2);
    vi.setSystemTime(Date.now() + 120_001);
    news.publishOnce([]);
    news.publishOnce(found);
    expect(sent()).toBe(3);
  });
});
