// What a host accepts to be asked, whoever sends it.

import { describe, expect, it } from "vitest";
import { readPreflightRequest } from "./request.ts";

const read = (value: unknown) => readPreflightRequest(JSON.stringify(value));

describe("a request to a host", () => {
  it("PRE-03 may name addresses, where their names lead, and how long to hold", () => {
    const request = {
      node_runtime_api_url: "https://node-api.gpuaas.test",
      node_runtime_resolve_address: "10.0.0.1",
      node_terminal_url: "wss://term.gpuaas.test:18443",
      node_terminal_resolve_address: "10.0.0.1",
      hold_seconds: 3,
      other: { node_terminal: "https://term.example.com" },
    };
    expect(read(request)).toEqual(request);
    expect(read({ hold_seconds: 900, unknown: true })).toEqual({ hold_seconds: 25, other: {} });
  });

  it.for([
    { node_runtime_api_url: "http://plain.example.com" },
    { node_terminal_url: "file:///etc/passwd" },
    { node_terminal_url: 7 },
    { node_runtime_resolve_address: "" },
    { other: { node_api: "ftp://x" } },
    "text",
    null,
  ])("PRE-03 is refused: %o", (value) => {
    expect(() => read(value)).toThrow();
  });

  it("PRE-03 is refused if it is not JSON", () => {
    expect(() => readPreflightRequest("{")).toThrow("not JSON");
  });
});
