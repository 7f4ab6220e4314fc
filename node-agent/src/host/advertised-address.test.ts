import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { parseAdvertised, problemOfAdvertised } from "./advertised-address.ts";

describe("the advertised address", () => {
  it.for([
    ["192.168.5.136:9000", { host: "192.168.5.136", port: 9000 }],
    ["node-7.example.com", { host: "node-7.example.com", port: undefined }],
    ["[2001:db8::1]:9000", { host: "2001:db8::1", port: 9000 }],
    ["2001:db8::1", { host: "2001:db8::1", port: undefined }],
    ["host:0", undefined],
    ["host:70000", undefined],
    ["http://host:9000", undefined],
    [":9000", undefined],
  ] as const)("AGENT-07 %s", ([text, expected]) => {
    expect(parseAdvertised(text)).toEqual(expected);
  });

  const listener = { port: 9000 };
  const known = async () => undefined;
  const unknown = async () => {
    throw new Error("ENOTFOUND");
  };

  it("AGENT-07 VM-09 is compared with the listener's port and resolved; each problem names the fix", async () => {
    expect(await problemOfAdvertised("host:9000", listener, known)).toBeUndefined();
    expect(await problemOfAdvertised("host", listener, known)).toBeUndefined();
    expect(await problemOfAdvertised("host:9001", listener, known)).toContain("set HOLDFAST_AGENT_PORT");
    expect(await problemOfAdvertised("host:9000", listener, unknown)).toContain("does not resolve: host");
    expect(await problemOfAdvertised("http://host", listener, known)).toContain("Use <host>:<port>");
  });

  it("AGENT-07 is never dialled", async () => {
    let connections = 0;
    const server = createServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    atEnd(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    const { port } = server.address() as { port: number };
    expect(await problemOfAdvertised(`127.0.0.1:${port}`, { port })).toBeUndefined();
    expect(connections).toBe(0);
  });
});
