import { afterEach, expect, it, vi } from "vitest";
import { followNetwork, onReachChange } from "./connection.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("takes the browser's word that it is offline, and that it is back, although nothing is requested", async () => {
  // What is polled while the server is unreachable is not looked at here.
  vi.useFakeTimers();
  const browser = new EventTarget();
  followNetwork(browser);
  const next = () => new Promise((resolve) => onReachChange(resolve));
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  const lost = next();
  browser.dispatchEvent(new Event("offline"));
  expect(await lost).toBe("unreachable");
  vi.stubGlobal("fetch", async () => new Response("{}"));
  const back = next();
  browser.dispatchEvent(new Event("online"));
  expect(await back).toBe("reached");
});
