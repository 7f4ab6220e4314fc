import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { isAllowedHost, openLocalListener } from "./listener.ts";

const open = async (ok: boolean, port = 0, bind = "127.0.0.1") => {
  let taken: string | undefined;
  const forged: string[] = [];
  const listener = await openLocalListener(
    { bind, port, onTaken: (why) => (taken = why), onForged: (detail) => forged.push(detail) },
    { healthz: () => ({ ok, detail: "x" }), capacity: () => ({ cpus: 1 }), metrics: () => "metric 1\n" },
  );
  atEnd(() => listener.close());
  return { ...listener, taken, forged, url: `http://127.0.0.1:${listener.port}` };
};

describe("the agent's own listener", () => {
  it("AGENT-07 answers 503 when the agent is dead inside", async () => {
    const response = await fetch(`${(await open(false)).url}/healthz`);
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({ ok: false, detail: "x" });
    expect((await fetch(`${(await open(true)).url}/healthz`)).status).toBe(200);
  });

  it("AGENT-07 changes nothing: only GET and HEAD are answered", async () => {
    const { url } = await open(true);
    expect((await fetch(`${url}/v1/capacity`, { method: "POST", body: "{}" })).status).toBe(405);
    const head = await fetch(`${url}/metrics`, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect(head.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  });

  it("ID-13 refuses whoever sends the header of an ingress, and tells of it", async () => {
    const { url, forged } = await open(true);
    const response = await fetch(`${url}/healthz`, { headers: { [CERTIFICATE_HEADER]: "x" } });
    expect([response.status, await response.json()]).toEqual([403, { code: "certificate_header_refused" }]);
    expect(forged).toEqual(["from 127.0.0.1"]);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("AGENT-07 takes another port when somebody has it, and says who", async () => {
    const { port, taken } = await open(true);
    expect(taken).toBeUndefined();
    const other = await open(true, port);
    expect(other.taken).toContain(`pid ${process.pid}`);
    expect(other.taken).toContain("HOLDFAST_AGENT_PORT");
    expect((await fetch(`${other.url}/healthz`)).status).toBe(200);
  });

  it("AGENT-07 does not listen where it was not told to", async () => {
    // 192.0.2.0/24 is for documentation: no machine has such an address.
    await expect(open(true, 0, "192.0.2.1")).rejects.toThrow("cannot listen on 192.0.2.1");
  });

  it.for([
    ["localhost:9000", "127.0.0.1", true],
    ["127.0.0.1", "127.0.0.1", true],
    ["127.8.8.8:1", "::1", true],
    ["[::1]:9000", "localhost", true],
    ["evil.example.com", "127.0.0.1", false],
    ["127.0.0.1.evil.example.com", "127.0.0.1", false],
    [undefined, "127.0.0.1", false],
    ["node-7.example.com:9000", "0.0.0.0", true],
    ["node-7.example.com:9000", "10.0.0.7", true],
    [undefined, "10.0.0.7", false],
  ] as const)("SEC-04 Host %s on %s: %s", ([host, bind, allowed]) => {
    expect(isAllowedHost(host, bind)).toBe(allowed);
  });
});
