// Input on its whole way, without sockets: two clients, the gateway's gate, the node's counts, and a network that
// delivers, delays and cuts in any order. Each writer's bytes reach the PTY once and in order.

import type { ClientFrame, InputPlace } from "@holdfast/contracts/terminal/frames";
import { createTerminalInput, type TerminalInput } from "@holdfast/terminal-client/input";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createInputGate, type InputGate } from "../../../gateway/src/terminals/input-gate.ts";
import { createInputCounts } from "../../../node-agent/src/drivers/pty/input-counts.mjs";

type ToGateway = Uint8Array | ClientFrame;
type ToClient = ({ type: "input" } & InputPlace) | { type: "ack"; bytes: number };
type ToNode = Uint8Array | { attachment: number; writer: string };
type FromNode = { type: "attached"; attachment: number; input: number } | { type: "ack"; bytes: number };

type Person = { input: TerminalInput; typed: number[]; written: number[]; up: ToGateway[]; down: ToClient[] };

function world() {
  const person = (): Person => ({
    ...{ input: createTerminalInput(1e6), typed: [], written: [] },
    ...{ up: [], down: [] },
  });
  const people = [person(), person()] as const;
  let present: { person: Person; gate: InputGate } | undefined;
  let attachment = 0;
  let flowing = false;
  let nodeConnected = true;
  const toNode: ToNode[] = [];
  const fromNode: FromNode[] = [];
  let writer: Person | undefined;
  const queue: { of: Person; byte: number }[] = [];
  const counts = createInputCounts({
    unwritten: () => queue.length,
    every: 1e9,
    acknowledge: (bytes) => nodeConnected && fromNode.push({ type: "ack", bytes }),
  });

  const attach = () => {
    if (!present || !nodeConnected) return;
    attachment += 1;
    flowing = false;
    toNode.push({ attachment, writer: present.person.input.writer });
    present.gate.attaching();
  };
  const send = (from: Person) => {
    if (present?.person !== from) return;
    for (let piece = from.input.next(); piece; piece = from.input.next()) from.up.push(piece);
  };
  const leave = () => {
    if (!present) return;
    const { person: gone } = present;
    present = undefined;
    gone.input.disconnect();
    gone.up.length = 0;
    gone.down.length = 0;
  };
  const reachNode = (frame: ToNode) => {
    if (frame instanceof Uint8Array) {
      counts.taken(frame.length);
      for (const byte of frame) if (writer) queue.push({ of: writer, byte });
      return;
    }
    writer = people.find(({ input }) => input.writer === frame.writer);
    fromNode.push({ type: "attached", attachment: frame.attachment, input: counts.attach(frame.writer) });
    counts.acknowledgeNow();
  };
  const reachGateway = (frame: ToGateway) => {
    if (!present) return;
    if (!(frame instanceof Uint8Array)) {
      if (frame.type === "input") present.gate.answered(frame);
    } else if (nodeConnected && present.gate.isOpen()) toNode.push(frame);
  };
  const comeFromNode = (frame: FromNode) => {
    if (!present) return;
    if (frame.type === "ack") {
      if (flowing) present.person.down.push(frame);
    } else if (frame.attachment === attachment) {
      flowing = true;
      const { input } = present.gate.attached(attachment, frame.input);
      if (input) present.person.down.push({ type: "input", ...input });
    }
  };
  const reachPerson = ({ input, up }: Person, frame: ToClient) => {
    if (frame.type === "ack") input.acknowledge(frame.bytes);
    else {
      const answer = input.place(frame);
      if (answer) up.push(answer);
    }
  };
  const deliver = (count: number) => {
    for (const frame of toNode.splice(0, count)) reachNode(frame);
    for (const frame of fromNode.splice(0, count)) comeFromNode(frame);
    for (const one of people) {
      for (const frame of one.down.splice(0, count)) reachPerson(one, frame);
      send(one);
      for (const frame of one.up.splice(0, count)) reachGateway(frame);
    }
  };
  const write = (count: number) => {
    for (const { of, byte } of queue.splice(0, count)) of.written.push(byte);
    counts.acknowledgeNow();
  };
  const connect = (who: 0 | 1) => {
    leave();
    present = { person: people[who], gate: createInputGate(people[who].input.writer) };
    attach();
  };
  const cutNode = (arrives: number) => {
    // Of the message under way a part may have been read already.
    const [first] = toNode.splice(0);
    if (first instanceof Uint8Array) reachNode(first.subarray(0, Math.min(arrives, first.length)));
    fromNode.length = 0;
    nodeConnected = false;
    flowing = false;
    present?.gate.close();
  };
  const nodeBack = () => {
    if (nodeConnected) return;
    nodeConnected = true;
    attach();
  };

  return {
    people,
    type(who: 0 | 1, count: number) {
      const { input, typed } = people[who];
      const fresh = Array.from({ length: count }, (_, index) => (typed.length + index) % 256);
      typed.push(...fresh);
      input.add(Uint8Array.from(fresh));
      send(people[who]);
    },
    ...{ connect, leave, cutNode, nodeBack, deliver, write },
    settle() {
      nodeBack();
      for (const who of [0, 1] as const) {
        connect(who);
        for (let turn = 0; turn < 8; turn += 1) {
          deliver(1e6);
          write(1e6);
        }
      }
    },
  };
}

const who = fc.constantFrom(0 as const, 1 as const);
const some = fc.integer({ min: 1, max: 9 });
type World = ReturnType<typeof world>;
const happening: fc.Arbitrary<(on: World) => void> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(who, some).map(
      ([one, count]) =>
        (on: World) =>
          on.type(one, count),
    ),
  },
  { weight: 6, arbitrary: some.map((count) => (on: World) => on.deliver(count)) },
  { weight: 3, arbitrary: some.map((count) => (on: World) => on.write(count)) },
  { weight: 2, arbitrary: who.map((one) => (on: World) => on.connect(one)) },
  fc.constant((on: World) => on.leave()),
  some.map((count) => (on: World) => on.cutNode(count)),
  { weight: 2, arbitrary: fc.constant((on: World) => on.nodeBack()) },
);

it("TERM-10 reaches the shell once and in order, whatever is cut, repeated or taken over", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 120 }), (story) => {
      const on = world();
      for (const happens of story) {
        happens(on);
        for (const { typed, written, input } of on.people) {
          expect(written).toEqual(typed.slice(0, written.length));
          // What is confirmed was written: nobody is told of too little.
          expect(typed.length - input.unconfirmed()).toBeLessThanOrEqual(written.length);
        }
      }
      on.settle();
      for (const { typed, written, input } of on.people) {
        expect(written).toEqual(typed);
        expect(input.unconfirmed()).toBe(0);
      }
    }),
    { numRuns: 1_000 },
  );
});
