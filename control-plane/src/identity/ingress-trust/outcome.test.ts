import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outcomeOf, type Reply } from "./outcome.ts";

const canary = { id: "0199c0de-0000-7000-8000-000000000001" };
const answer = (status: number, text: string, untrusted?: string): Reply => ({
  ...{ kind: "answer", status, text, untrusted },
});
const json = (value: object, untrusted?: string) => answer(200, JSON.stringify(value), untrusted);
const page = (sentence: string) =>
  `<html>\r\n<head><title>400 ${sentence}</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n` +
  `<center>${sentence}</center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n`;
const none = (code: string): Reply => ({ kind: "none", code, message: "it failed" });
const stateOf = (reply: Reply) => outcomeOf(reply, canary).state;

describe("what became of a canary", () => {
  it("ID-11 accepted is the answer of our own listener to this very canary, from a server that nodes trust", () => {
    const own = { certificate: "canary", canary: canary.id, ingress: "front" };
    expect(outcomeOf(json(own), canary)).toEqual({ state: "accepted", ingress: "front" });
    expect(outcomeOf(json({ ...own, ingress: null }), canary)).toEqual({ state: "accepted", ingress: null });
    expect(stateOf(json({ ...own, canary: canary.id.replace("1", "2") }))).toBe("unreachable");
    expect(outcomeOf(json(own, "SELF_SIGNED_CERT_IN_CHAIN"), canary)).toMatchObject({
      ...{ state: "unreachable", why: expect.stringContaining("SELF_SIGNED_CERT_IN_CHAIN") },
    });
  });

  it.for([
    [answer(400, page("The SSL certificate error")), "HTTP 400: The SSL certificate error"],
    [answer(400, page("No required SSL certificate was sent")), "No required SSL certificate was sent"],
    [none("ERR_SSL_TLSV1_ALERT_UNKNOWN_CA"), "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA"],
    [none("ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE"), "handshake"],
    [json({ certificate: "none", canary: null, ingress: null }), "does not forward"],
    [json({ certificate: "none", canary: null, ingress: null }, "SELF_SIGNED_CERT"), "does not forward"],
    [json({ certificate: "untrusted", canary: null, ingress: null }), "does not know the CA"],
  ] as const)("ID-11 %j is a rejection", ([reply, why]) => {
    expect(outcomeOf(reply, canary)).toEqual({ state: "rejected", why: expect.stringContaining(why) });
  });

  it.for([
    ...[
      "ECONNREFUSED",
      "ECONNRESET",
      "TIMEOUT",
      "EHOSTUNREACH",
      "EPROTO",
      "ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED",
    ].map(none),
    answer(502, "<html>Bad Gateway</html>"),
    answer(503, '{"code":"ingress_identity_refused"}'),
    answer(404, '{"code":"route_not_found"}'),
    answer(401, "Please sign in to the hotel network"),
    answer(200, "Welcome to nginx!"),
    answer(400, page("The plain HTTP request was sent to HTTPS port")),
    answer(502, page("The SSL certificate error")),
    json({ certificate: "other", canary: null, ingress: null }),
    json([]),
  ])("ID-11 %j says nothing about trust", (reply) => {
    expect(stateOf(reply)).toBe("unreachable");
  });

  it("ID-11 is total, and whoever does not know the canary's id cannot have accepted it", () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constant(page("The SSL certificate error")));
    const replies = fc.oneof(
      fc.record({ kind: fc.constant("none" as const), code: fc.string(), message: fc.string() }),
      fc.record({
        kind: fc.constant("answer" as const),
        ...{
          status: fc.integer({ min: 100, max: 599 }),
          text,
          untrusted: fc.option(fc.string(), { nil: undefined }),
        },
      }),
    );
    fc.assert(
      fc.property(replies, (reply) => {
        expect(["rejected", "unreachable"]).toContain(stateOf(reply));
      }),
    );
  });
});
