// What an agent says, in turn: `hello` first, then pings and reports about its requests.

import { executionCloseCodes, type HelloFrame } from "@holdfast/contracts/execution/frames";
import type { Log } from "@holdfast/service/log";
import { MOST_UNSENT_BYTES } from "../../listeners/forward.ts";
import { type ReportFrame, readFrame } from "./frames.ts";
import type { Reports } from "./reports.ts";
import { type AgentSession, about, type Introduction } from "./session.ts";
import { sharing } from "./shared.ts";

export type Conversation = { onFrame(session: AgentSession, data: Buffer, isBinary: boolean): void };

export type ConversationOptions = {
  reports: Pick<Reports, "report" | "renewed">;
  onHello(session: AgentSession): void;
  /** An agent is about to stop. */
  onDraining(): void;
  /** A frame was ignored. */
  onInvalid(): void;
  log: Log;
};

/** Between two sweeps: reading it costs time. */
const MOST_DROPPED_BYTES = 8 * 1024 * 1024;

export function createConversation(options: ConversationOptions): Conversation {
  const { reports, log } = options;
  const shared = sharing<Introduction>();

  function onFrame(session: AgentSession, data: Buffer, isBinary: boolean) {
    session.heardAt = Date.now();
    const read = isBinary ? ({ type: "foreign" } as const) : readFrame(data);
    switch (read.type) {
      case "hello":
        return onHello(session, read.hello);
      case "ping":
        if (!session.hello) return malformed(session, "hello must come first");
        if (session.socket.bufferedAmount <= MOST_UNSENT_BYTES)
          session.socket.send(`{"type":"pong","ts":${read.ts}}`);
        return;
      case "report":
        if (!session.hello) return malformed(session, "hello must come first");
        return onReport(session, read.frame, data.length);
      case "unknown":
        if (!session.hello) malformed(session, "hello must come first");
        return;
      case "foreign":
        return malformed(session, "a frame is one JSON text with a type");
      case "invalid":
        if (!session.hello) return malformed(session, `${read.of}: ${read.problem}`);
        return onInvalid(session, `${read.of}: ${read.problem}`);
    }
  }

  /** Closing would only make the agent connect and send it again. */
  function onInvalid(session: AgentSession, problem: string) {
    session.malformedFrames += 1;
    options.onInvalid();
    if (session.malformedFrames === 1)
      log.warn({ ...about(session), reason: problem }, "ignores an invalid frame");
  }

  function onHello(session: AgentSession, hello: HelloFrame) {
    if (session.hello) return onInvalid(session, "hello: it was said before on this connection");
    const { agentVersion, capabilities, protocolVersion } = hello;
    session.hello = shared({ agentVersion, capabilities, protocolVersion });
    session.keySetVersion = hello.keySetVersion ?? null;
    session.journalId = (session.speaksAll ? hello.journalId : undefined) ?? null;
    if (session.speaksAll) {
      session.held = undefined;
      for (const { requestId, generation } of hello.holding ?? []) {
        const held = { generation, cycleAt: Number.POSITIVE_INFINITY, needsExitCode: true, stopping: false };
        session.hold(requestId, held);
      }
    }
    log.info(
      { ...about(session), agent_version: agentVersion, protocol_version: session.protocolVersion },
      "an agent has connected",
    );
    options.onHello(session);
  }

  function onReport(session: AgentSession, frame: ReportFrame, bytes: number) {
    if (!session.speaksAll && frame.type !== "execute_result")
      return onInvalid(session, `${frame.type}: not expected`);
    switch (frame.type) {
      case "drain":
        session.isDraining = true;
        return options.onDraining();
      case "renew":
        for (const held of frame.holding) reports.renewed(session, held);
        return pauseIfFlooded(session);
      case "execute_result": {
        if (session.speaksAll && frame.generation === undefined)
          return onInvalid(session, "execute_result: generation is missing");
        const held = session.held?.get(frame.requestId);
        if (held) held.cycleAt = Number.POSITIVE_INFINITY;
        // An agent of another system knows no generations.
        if (!session.speaksAll) frame.generation = undefined;
        break;
      }
      default:
        break;
    }
    if (!reports.report(session, frame, bytes)) session.droppedBytes += bytes;
    pauseIfFlooded(session);
  }

  /** Not read until a later sweep: an agent that floods us must not keep others waiting, nor fill the memory. */
  function pauseIfFlooded(session: AgentSession) {
    if (session.droppedBytes > MOST_DROPPED_BYTES || session.isBehind) session.socket.pause();
  }

  function malformed(session: AgentSession, problem: string): void {
    log.info({ ...about(session), reason: problem }, "closes the connection of an agent: malformed");
    session.close(executionCloseCodes.malformed, "malformed", {
      code: "frame_malformed",
      message: `Not accepted: ${problem}.`,
    });
  }

  return { onFrame };
}
