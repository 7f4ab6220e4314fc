import { describe, expect, it } from "vitest";
import { LinkFailure } from "../link/failures.ts";
import { createDialGateway } from "./gateway-address.ts";
import type { Stream } from "./stream.ts";

const [first, second] = ["https://first:18443", "https://second:18443"];
const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const unknown = new LinkFailure({
  kind: "answer",
  status: 404,
  code: "terminal_session_unknown",
  excerpt: "none",
});

function gatewayAt(answers: Record<string, Stream | Error>) {
  const dialled: string[] = [];
  const dial = createDialGateway({
    dial: async ({ url }) => {
      dialled.push(url);
      const answer = answers[url];
      if (answer instanceof Error || answer === undefined) throw answer ?? refused;
      return answer;
    },
  });
  const session = () => ({ sessionId: "s", correlationId: "c", signal: new AbortController().signal });
  return { dialled, open: (url: string, isFixed = false) => dial({ url, isFixed }, session()) };
}

const stream = {} as Stream;

describe("the gateway's address", () => {
  it("ID-16 TERM-12 is the one that worked last while the published one does not work", async () => {
    const gateway = gatewayAt({ [first]: stream });
    await gateway.open(first);
    expect(await gateway.open(second)).toEqual({ stream, url: first });
    expect(gateway.dialled).toEqual([first, second, first]);
  });

  it("ID-16 TERM-12 is the published one as soon as it works, and from then on", async () => {
    const gateway = gatewayAt({ [first]: stream, [second]: stream });
    await gateway.open(first);
    expect((await gateway.open(second)).url).toBe(second);
    expect(gateway.dialled).toEqual([first, second]);
  });

  it("TERM-12 is no other than the one set on this host, and none is tried for a session that is gone", async () => {
    const answers: Record<string, Stream | Error> = { [first]: stream };
    const gateway = gatewayAt(answers);
    await expect(gateway.open(second)).rejects.toBe(refused);
    await gateway.open(first);
    await expect(gateway.open(second, true)).rejects.toBe(refused);
    answers[second] = unknown;
    await expect(gateway.open(second)).rejects.toBe(unknown);
    answers[second] = refused;
    answers[first] = unknown;
    await expect(gateway.open(second), "the failure of the published one").rejects.toBe(refused);
  });
});
