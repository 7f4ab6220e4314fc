import { describe, expect, it } from "vitest";
import { executionUrl, publicHosts, terminalUrl } from "./addresses.ts";

const plain = {
  bind: "127.0.0.1",
  publicUrl: undefined,
  tlsCertFile: undefined,
  gatewayUrl: undefined,
  executionUrl: undefined,
};

describe("where browsers find terminals", () => {
  it.for([
    [plain, "ws://127.0.0.1:3002/v1/terminal"],
    [{ ...plain, bind: "localhost" }, "ws://127.0.0.1:3002/v1/terminal"],
    [{ ...plain, bind: "::1" }, "ws://[::1]:3002/v1/terminal"],
    [{ ...plain, publicUrl: "https://holdfast.example.com" }, "ws://127.0.0.1:3002/v1/terminal"],
    [
      { ...plain, bind: "0.0.0.0", publicUrl: "https://holdfast.example.com" },
      "wss://holdfast.example.com:3002/v1/terminal",
    ],
    [
      { ...plain, bind: "0.0.0.0", publicUrl: "http://10.0.0.7:3001", tlsCertFile: "/cert.pem" },
      "wss://10.0.0.7:3002/v1/terminal",
    ],
    [{ ...plain, gatewayUrl: "https://term.example.com" }, "wss://term.example.com/v1/terminal"],
    [{ ...plain, gatewayUrl: "http://term.example.com:8080" }, "ws://term.example.com:8080/v1/terminal"],
  ] as const)("TERM-02 %o", ([place, url]) => {
    expect(terminalUrl(place, 3002)).toBe(url);
    expect(publicHosts(place)).toContain(new URL(url).hostname);
  });
});

describe("where execution agents connect", () => {
  it.for([
    [plain, "ws://127.0.0.1:3002/ws"],
    [{ ...plain, gatewayUrl: "https://term.example.com" }, "wss://term.example.com/ws"],
    [{ ...plain, executionUrl: "wss://agents.example.com/ws/executor" }, "wss://agents.example.com/ws/executor"],
  ] as const)("EXEC-08 %o", ([place, url]) => {
    expect(executionUrl(place, 3002)).toBe(url);
    expect(publicHosts(place)).toContain(new URL(url).hostname);
  });
});
