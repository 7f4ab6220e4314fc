// One line over a terminal that was there and is not, or not quite: what is wrong, at which hop, when the next
// try comes, and the buttons for a person who knows better. What was written stays in sight.

import type { Lost, State } from "@holdfast/terminal-client/states";
import type { ReactNode } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { classes } from "../../design/controls/classes.ts";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { exactTime } from "../../design/values/time.ts";
import type { Connection } from "./connection.ts";
import { useTicking } from "./use-ticking.ts";
import { connectionMarks, waitingInWords } from "./words.ts";

type Shown = Exclude<State, { phase: "ready" | "failed" | "ended" }>;

type ReconnectBarProps = {
  state: Shown;
  connection: Connection;
  back: ReactNode;
  /** The allocation was released: no button opens anything. */
  over: boolean;
  /** Where the bar hides nothing that was written last. */
  free: "top" | "bottom";
};

export function ReconnectBar({ state, connection, back, over, free }: ReconnectBarProps) {
  switch (state.phase) {
    case "unresponsive":
      return (
        <Bar at={free}>
          <Sentence>{nodeSentence(state.node)}</Sentence>
          <span>Your connection to the gateway works. The terminal returns when the node does.</span>
          <WaitingInput connection={connection} />
        </Bar>
      );
    case "pausing":
      return (
        <Bar at={free} buttons={<Hurry connection={connection} />}>
          <Sentence>{lossSentence(state.lost)}</Sentence>
          <span>
            Next try <Countdown until={state.until} />
          </span>
          <Attempt of={state.lost} />
          <WaitingInput connection={connection} />
        </Bar>
      );
    case "stopped":
      return (
        <Bar
          at={free}
          buttons={
            <>
              {!over && (
                <Button look="primary" onClick={connection.tryAgain}>
                  Reconnect
                </Button>
              )}
              {!over && <Button onClick={connection.openNew}>Open a new shell</Button>}
              {back}
            </>
          }
        >
          <Sentence>{lossSentence(state.lost)}</Sentence>
          <span>Reconnecting was stopped. The shell may still be running.</span>
          <WaitingInput connection={connection} />
        </Bar>
      );
    case "probing":
    case "asking":
    case "joining":
    case "checking":
    case "waiting": {
      const lost = state.phase === "probing" ? state.lost : state.round.lost;
      return (
        <Bar at={free} buttons={lost && <Hurry connection={connection} />}>
          <span className="flex">
            <StatusMark state="moving">
              {(lost ? connectionMarks.reconnecting : connectionMarks.connecting).word}
            </StatusMark>
          </span>
          {lost && <Attempt of={lost} />}
          <WaitingInput connection={connection} />
        </Bar>
      );
    }
  }
}

function lossSentence({ failure, cause }: Lost): string {
  if (failure) return failure.message;
  return cause === "unresponsive" ? "The gateway does not answer." : "The connection to the gateway was lost.";
}

function nodeSentence({ cause, since }: Extract<Shown, { phase: "unresponsive" }>["node"]): string {
  const [, time] = exactTime(since).split(" ");
  return cause === "silent"
    ? `The node has not answered since ${time}.`
    : `The node lost its connection to the gateway at ${time}.`;
}

function Hurry({ connection }: { connection: Connection }) {
  return (
    <>
      <Button look="primary" onClick={connection.tryAgain}>
        Reconnect now
      </Button>
      <Button onClick={connection.stop}>Stop</Button>
    </>
  );
}

function Sentence({ children }: { children: string }) {
  return (
    <span className="flex">
      <StatusMark state="degraded" long>
        <span>{children}</span>
      </StatusMark>
    </span>
  );
}

/** Over lines, not beside them: the size of the terminal stays what the shell knows. */
function Bar({ at, buttons, children }: { at: "top" | "bottom"; buttons?: ReactNode; children: ReactNode }) {
  return (
    <div
      role="status"
      aria-label="Connection"
      className={classes(
        "absolute inset-x-0 z-10 flex flex-wrap items-center gap-x-4 gap-y-2 border-line bg-surface px-4 py-2 text-ink shadow-raised",
        at === "top" ? "top-0 border-b" : "bottom-0 border-t",
      )}
    >
      {children}
      {buttons && <span className="ml-auto flex flex-wrap gap-2">{buttons}</span>}
    </div>
  );
}

function Attempt({ of: { attempt } }: { of: Lost }) {
  return <span className="text-sm text-ink-muted">try {attempt}</span>;
}

/** What is typed while the shell cannot be reached. */
function WaitingInput({ connection }: { connection: Connection }) {
  useTicking();
  const bytes = connection.unconfirmed();
  return bytes > 0 && <span aria-live="off">{waitingInWords(bytes)}</span>;
}

function Countdown({ until }: { until: number }) {
  const left = Math.max(0, Math.ceil((until - useTicking()) / 1_000));
  return (
    <span aria-live="off" className="tabular-nums">
      {left === 0 ? "now" : `in ${left} s`}
    </span>
  );
}
