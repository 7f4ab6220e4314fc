import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ClientFrame,
  chainSteps,
  type GatewayFrame,
  MOST_COLUMNS,
  MOST_ROWS,
  type NodeFrame,
  readClientFrame,
  readGatewayFrame,
  readNodeFrame,
  readServerFrame,
  type ServerFrame,
} from "./frames.ts";

const count = fc.nat(Number.MAX_SAFE_INTEGER);
const size = { cols: fc.integer({ min: 1, max: MOST_COLUMNS }), rows: fc.integer({ min: 1, max: MOST_ROWS }) };
const type = <T extends string>(name: T) => fc.constant(name);
const writer = fc.stringMatching(/^[0-9a-f]{32}$/);
const place = { attachment: count, from: fc.option(count) };
const end = { code: fc.option(fc.integer()), signal: fc.option(fc.string()) };

const clientFrame: fc.Arbitrary<ClientFrame> = fc.oneof(
  fc.record({ type: type("resize"), ...size }),
  fc.record({ type: type("ack"), bytes: count }),
  fc.record({ type: type("input"), attachment: count, from: count }),
  fc.record({ type: type("ping") }),
);
const gatewayFrame: fc.Arbitrary<GatewayFrame> = fc.oneof(
  fc.record(
    { type: type("attach"), attachment: count, from: fc.option(count), writer, ...size },
    { requiredKeys: ["type", "attachment", "from", "cols", "rows"] },
  ),
  fc.record({ type: type("detach") }),
  fc.record({ type: type("resize"), ...size }),
  fc.record({ type: type("ack"), bytes: count }),
  fc.record({ type: type("close"), reason: fc.string() }),
);
const nodeFrame: fc.Arbitrary<NodeFrame> = fc.oneof(
  fc.record({ type: type("hello"), offset: count, end: count }),
  fc.record(
    { type: type("attached"), attachment: count, offset: count, replay: count, input: count },
    { requiredKeys: ["type", "attachment", "offset", "replay"] },
  ),
  fc.record({ type: type("ack"), bytes: count }),
  fc.record({ type: type("paused"), unacknowledged: count }),
  fc.record({ type: type("exit"), ...end }),
  fc.record({ type: type("error"), code: fc.string(), message: fc.string() }),
);

const words = {
  code: fc.string(),
  hop: fc.string(),
  message: fc.string(),
  action: fc.string(),
  owner: fc.string(),
};
const serverFrame: fc.Arbitrary<ServerFrame> = fc.oneof(
  fc.record({
    ...{ type: type("status"), step: fc.constantFrom(...chainSteps), at: fc.string(), ms: count },
    correlation_id: fc.string(),
  }),
  fc.record(
    {
      type: type("ready"),
      session_id: fc.string(),
      offset: count,
      window: count,
      replay: count,
      input: fc.record(place),
    },
    { requiredKeys: ["type", "session_id", "offset", "window", "replay"] },
  ),
  fc.record({ type: type("input"), ...place }),
  fc.record({ type: type("ack"), bytes: count }),
  fc.record({ type: type("error"), ...words, retryable: fc.boolean(), correlation_id: fc.string() }),
  fc.record({ type: type("exit"), ...end }),
  fc.record({ type: type("paused"), unacknowledged: count }),
  fc.record({
    type: type("unresponsive"),
    cause: fc.constantFrom("silent" as const, "disconnected" as const),
    since: fc.string(),
  }),
  fc.record({ type: type("responsive") }),
  fc.record({ type: type("pong") }),
);

const readers = [
  ["server", readServerFrame, serverFrame],
  ["client", readClientFrame, clientFrame],
  ["gateway", readGatewayFrame, gatewayFrame],
  ["node", readNodeFrame, nodeFrame],
] as const;

describe.for(readers)("frames of the %s", ([, read, frames]) => {
  it("TERM-02 are read as they were written", () => {
    fc.assert(
      fc.property(frames as fc.Arbitrary<object>, (frame) => {
        expect(read(JSON.stringify(frame))).toEqual(frame);
      }),
    );
  });

  it("TERM-02 are refused whatever else they are, and never throw", () => {
    fc.assert(fc.property(fc.string(), (text) => void read(text)));
    fc.assert(fc.property(fc.json(), (text) => void read(text)));
    for (const text of ["", "null", "[]", "1", "{}", '{"type":"eval"}', '{"type":"ack","bytes":-1}']) {
      expect(read(text)).toBeUndefined();
    }
  });
});

describe("the size of a terminal", () => {
  it("TERM-10 is kept within what a program can stand", () => {
    expect(readClientFrame('{"type":"resize","cols":100000,"rows":100000}')).toEqual({
      type: "resize",
      cols: MOST_COLUMNS,
      rows: MOST_ROWS,
    });
    for (const wrong of [
      '{"cols":0,"rows":1}',
      '{"cols":1.5,"rows":1}',
      '{"cols":"80","rows":24}',
      '{"cols":80}',
    ]) {
      expect(readClientFrame(JSON.stringify({ type: "resize", ...JSON.parse(wrong) }))).toBeUndefined();
    }
  });
});
