// What stands in place of the terminal, or beside it once there is something to read: how it comes up,
// why it does not, that it is lost for a moment, how it ended.

import { type ReactNode, useEffect, useState } from "react";
import { Button } from "../../design/Button.tsx";
import { CopyableId } from "../../design/Copy.tsx";
import { classes } from "../../design/classes.ts";
import { Fact, Facts } from "../../design/Facts.tsx";
import { Prose } from "../../design/Prose.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { tookMs } from "../../design/time.ts";
import { type Connecting, PAUSES_MS } from "./connecting.ts";
import type { Connection } from "./connection.ts";
import { type Failure, hopInWords, ownerInWords, type Remedy, remedyOf } from "./failures.ts";
import { ReadinessSteps } from "./ReadinessSteps.tsx";
import { exitInWords, unconfirmedInWords, waitingInWords } from "./words.ts";

type PanelProps = {
  state: Connecting;
  connection: Connection;
  /** Who and where: alice on rock-1. */
  where: string;
  back: ReactNode;
  /** Something was shown already: it stays in sight. */
  docked: boolean;
  /** The allocation was given back: no button opens anything. */
  over: boolean;
  /** Where a bar hides nothing that was written last. */
  free: "top" | "bottom";
};

export function Panel({ state, connection, where, back, docked, over, free }: PanelProps) {
  switch (state.phase) {
    case "ready":
      return null;
    case "asking":
    case "joining":
    case "checking":
    case "waiting": {
      const { chain, askedAt, attempt } = state.round;
      if (docked)
        return (
          <Bar at={free}>
            <span className="flex">
              <StatusMark state="moving">Connecting again</StatusMark>
            </span>
            {attempt > 0 && <Tries attempt={attempt} />}
            <WaitingInput connection={connection} />
          </Bar>
        );
      return (
        <Middle>
          <h2 className="text-xl font-semibold tracking-tight">Opening a terminal</h2>
          <p className="mt-0.5 mb-5 flex justify-between gap-4 text-ink-muted">
            {where}
            <Elapsed since={askedAt} />
          </p>
          <div role="status" aria-live="polite">
            <ReadinessSteps chain={chain} next="awaited" />
          </div>
        </Middle>
      );
    }
    case "pausing":
      return (
        <Bar at={free}>
          <span className="flex">
            <StatusMark state="degraded" long>
              <span>{state.failure?.message ?? "The connection was lost."}</span>
            </StatusMark>
          </span>
          <span>
            Trying again <Countdown until={state.until} />
          </span>
          <Tries attempt={state.attempt} />
          <WaitingInput connection={connection} />
          <Button className="ml-auto" onClick={connection.tryAgain}>
            Try now
          </Button>
        </Bar>
      );
    case "failed": {
      const Frame = docked ? Dock : Middle;
      return (
        <Frame>
          <FailureView failure={state.failure} docked={docked}>
            {docked || isMerelyOver(state) ? null : (
              <ReadinessSteps chain={state.chain} next={{ failedAt: state.failure.hop }} />
            )}
          </FailureView>
          <Unconfirmed bytes={connection.unconfirmed()} />
          <FailureButtons remedy={over ? "none" : remedyOf(state.failure)} connection={connection} back={back} />
        </Frame>
      );
    }
    case "ended":
      return (
        <div
          role="status"
          className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-t border-line bg-surface px-4 py-3 text-ink"
        >
          <span className="flex">
            <StatusMark state={state.exit.code === 0 ? "ended" : "degraded"} long>
              <span>{exitInWords(state.exit)}</span>
            </StatusMark>
          </span>
          <Unconfirmed bytes={connection.unconfirmed()} />
          <span className="ml-auto flex flex-wrap gap-2">
            {back}
            {!over && (
              <Button look="primary" onClick={connection.openNew}>
                Open a new shell
              </Button>
            )}
          </span>
        </div>
      );
  }
}

/** A shell that has ended meanwhile stopped at no step. */
function isMerelyOver({ failure, chain }: Extract<Connecting, { phase: "failed" }>): boolean {
  return remedyOf(failure) === "new" && Object.keys(chain).length === 0;
}

function Middle({ children }: { children: ReactNode }) {
  return (
    <div className="absolute inset-0 z-10 flex overflow-y-auto bg-page p-4 sm:p-8">
      <div className="m-auto w-full max-w-xl rounded-lg border border-line bg-surface p-5 text-ink sm:p-7">
        {children}
      </div>
    </div>
  );
}

/** In its own place, so that the last lines stay in sight. */
function Dock({ children }: { children: ReactNode }) {
  return (
    <div className="max-h-[70%] shrink-0 overflow-y-auto border-t border-line bg-surface px-4 py-4 text-ink sm:px-6">
      <div className="max-w-3xl">{children}</div>
    </div>
  );
}

/** Over lines, not beside them: the size of the terminal stays what the shell knows. */
function Bar({ at, children }: { at: "top" | "bottom"; children: ReactNode }) {
  return (
    <div
      role="status"
      className={classes(
        "absolute inset-x-0 z-10 flex flex-wrap items-center gap-x-4 gap-y-2 border-line bg-surface px-4 py-2 text-ink shadow-raised",
        at === "top" ? "top-0 border-b" : "bottom-0 border-t",
      )}
    >
      {children}
    </div>
  );
}

type FailureViewProps = { failure: Failure; docked: boolean; children?: ReactNode };

function FailureView({ failure, docked, children }: FailureViewProps) {
  const { message, why, hop, owner, action, code, correlationId } = failure;
  return (
    <div role="alert" data-code={code}>
      <h2 className="flex items-start gap-2.5 text-lg leading-6 font-semibold text-failed">
        <svg viewBox="0 0 12 12" className="mt-[7px] size-3 shrink-0" aria-hidden="true">
          <path d="M1.5 1.5h9v9h-9z" fill="currentColor" />
        </svg>
        <span>
          <Prose text={message} />
        </span>
      </h2>
      {why && (
        <p className="mt-1.5 pl-5.5 [overflow-wrap:anywhere]">
          <Prose text={why} />
        </p>
      )}
      {children && <div className="mt-5 rounded-md bg-sunken px-4 py-3">{children}</div>}
      <Facts className={docked ? "mt-1 text-sm" : "mt-3"}>
        <Fact name="What to do">
          <Prose text={action} />
        </Fact>
        <Fact name="Where">{sentence(hopInWords(hop))}</Fact>
        <Fact name="Who can fix it">{sentence(ownerInWords(owner))}</Fact>
        <Fact name="To quote">
          <span className="block">
            <span className="font-mono text-sm">{code}</span>
            {correlationId && <CopyableId id={correlationId} label="Copy correlation id" />}
          </span>
        </Fact>
      </Facts>
    </div>
  );
}

const again: Partial<Record<Remedy, string>> = {
  same: "Try again",
  later: "Try again",
  take_back: "Take it back here",
};

type FailureButtonsProps = { remedy: Remedy; connection: Connection; back: ReactNode };

function FailureButtons({ remedy, connection, back }: FailureButtonsProps) {
  const label = again[remedy];
  return (
    <div className="mt-4 flex flex-wrap gap-2">
      {label && (
        <Button look="primary" onClick={connection.tryAgain}>
          {label}
        </Button>
      )}
      {(remedy === "new" || remedy === "take_back") && (
        <Button look={label ? "secondary" : "primary"} onClick={connection.openNew}>
          Open a new shell
        </Button>
      )}
      {back}
    </div>
  );
}

function Tries({ attempt }: { attempt: number }) {
  return (
    <span className="text-sm text-ink-muted">
      try {attempt} of {PAUSES_MS.length}
    </span>
  );
}

/** What is typed while the shell cannot be reached. */
function WaitingInput({ connection }: { connection: Connection }) {
  useTicking();
  const bytes = connection.unconfirmed();
  return bytes > 0 && <span aria-live="off">{waitingInWords(bytes)}</span>;
}

function Unconfirmed({ bytes }: { bytes: number }) {
  return bytes > 0 && <p data-testid="unconfirmed">{unconfirmedInWords(bytes)}</p>;
}

function Elapsed({ since }: { since: number }) {
  const ms = useTicking() - since;
  return (
    <span aria-live="off" className="font-mono text-sm tabular-nums">
      {tookMs(Math.max(0, Math.round(ms / 100) * 100))}
    </span>
  );
}

function Countdown({ until }: { until: number }) {
  const left = Math.max(0, Math.ceil((until - useTicking()) / 1_000));
  return <span aria-live="off">{left === 0 ? "now" : `in ${left} s`}</span>;
}

/** The connection's clock, ten times a second: these waits are short, and each is watched. */
function useTicking(): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
