import { allowanceOf } from "@holdfast/kit/addresses";
import { describe, expect, it } from "vitest";
import { networkOf } from "../../src/connectors/send/network.ts";
import { standIn } from "./server.ts";
import { codeOf, publicOnly, run } from "./suite.ts";

const get = (url: string, network = publicOnly) =>
  run({ connector: "http", action: "get", input: { url }, network });

describe("where connectors of the worker connect to", () => {
  it.for([
    ...[
      "https://127.0.0.1/",
      "http://127.0.0.1:8080/",
      "https://127.1/",
      "https://2130706433/",
      "https://0x7f000001/",
      "https://0177.0.0.1/",
    ],
    ...[
      "https://localhost/",
      "https://[::1]/",
      "https://[::ffff:127.0.0.1]/",
      "https://[::ffff:7f00:1]/",
      "https://0.0.0.0/",
      "https://[::]/",
    ],
    ...[
      "https://169.254.169.254/latest/meta-data/",
      "http://169.254.169.254/",
      "https://[fe80::1]/",
      "https://[::ffff:a9fe:a9fe]/",
    ],
    ...[
      "https://10.0.0.1/",
      "https://172.16.0.1/",
      "https://192.168.0.1/",
      "https://100.64.0.1/",
      "https://[fd00::1]/",
      "https://[64:ff9b::7f00:1]/",
      "https://[::127.0.0.1]/",
      "https://[::ffff:0:127.0.0.1]/",
      "https://168.63.129.16/",
    ],
    ...["https://127。0。0。1/", "https://①②⑦.0.0.1/", "HTTPS://127.0.0.1:443/"],
  ])("SEC-04 is not %s", async (url) => {
    expect(codeOf(await get(url))).toBe("address_refused");
  });

  it.for([
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "https://user:pass@example.com/",
    "https:///x",
    "//127.0.0.1/",
  ])("SEC-04 has the form of a URL: not %s", async (url) =>
    expect(["input_invalid", "address_refused"]).toContain(codeOf(await get(url))),
  );

  it("SEC-04 is encrypted on public addresses", async () => {
    const network = networkOf(allowanceOf([]), async () => ["192.0.2.1"]);
    expect(await get("http://example.com/", network)).toMatchObject({
      failure: { code: "address_refused", message: expect.stringContaining("https://") },
    });
    const mail = {
      server: { host: "mail.example.com", tls: "none" },
      from: "a@example.com",
      to: ["b@example.com"],
      subject: "s",
      text: "t",
    };
    expect(codeOf(await run({ connector: "email", action: "send", input: mail, network }))).toBe(
      "address_refused",
    );
  });

  it.for(["localhost", "127.0.0.1", "2130706433", "::1"])("SEC-04 is no mail server at %s", async (host) => {
    const input = {
      server: { host, port: 25 },
      from: "a@example.com",
      to: ["b@example.com"],
      subject: "s",
      text: "t",
    };
    expect(codeOf(await run({ connector: "email", action: "send", input, network: publicOnly }))).toBe(
      "address_refused",
    );
  });

  it("SEC-04 is what was checked: a name that is resolved to something else later changes nothing", async () => {
    const checked = await standIn(() => ({ status: 200, body: "checked" }));
    const { port } = new URL(checked.url);
    let asked = 0;
    const rebinding = networkOf(allowanceOf(["127.0.0.1"]), async () => {
      asked += 1;
      return asked === 1 ? ["127.0.0.1"] : ["127.0.0.2"];
    });
    // No resolver of the system knows the name: only the checked address leads anywhere.
    const outcome = await get(`http://rebinding.invalid:${port}/`, rebinding);
    expect(outcome).toMatchObject({ output: { status: 200, body: "checked" } });
    expect(asked).toBe(1);
    expect(checked.got[0]?.headers.host).toBe(`rebinding.invalid:${port}`);
  });

  it("SEC-04 is refused as a whole if one address of a name is private", async () => {
    const network = networkOf(allowanceOf([]), async () => ["192.0.2.1", "10.0.0.1"]);
    expect(codeOf(await get("https://example.com/", network))).toBe("address_refused");
  });

  it("FLOW-04 a name that does not exist, and a port that nobody listens on, had no effect", async () => {
    const unknown = networkOf(allowanceOf([]), () =>
      Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" })),
    );
    expect(await get("https://example.invalid/", unknown)).toMatchObject({
      failure: { code: "unreachable" },
      retryable: true,
      outcomeKnown: true,
    });
    const closed = networkOf(allowanceOf(["127.0.0.1"]));
    expect(await get("http://127.0.0.1:9/", closed)).toMatchObject({
      failure: { code: "unreachable" },
      outcomeKnown: true,
    });
  });
});
