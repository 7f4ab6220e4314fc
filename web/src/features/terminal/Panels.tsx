// What stands in place of the terminal, or beside it once there is something to read: how it comes up,
// why it does not, how it ended. What is lost for a moment has its bar in ReconnectBar.tsx.

import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { alsoOffered } from "@holdfast/contracts/reasons/terminal";
import type { Remedy } from "@holdfast/contracts/reasons/vocabulary";
import { readinessSteps } from "@holdfast/contracts/terminal/frames";
import { type Failure, remedyOf } from "@holdfast/terminal-client/failures";
import type { State } from "@holdfast/terminal-client/states";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { TraceLink } from "../trace/TraceLink.tsx";
import type { Connection } from "./connection.ts";
import { hopInWords, ownerInWords } from "./failures.ts";
import { ReadinessSteps } from "./ReadinessSteps.tsx";
import { ReconnectBar } from "./ReconnectBar.tsx";
import { useTicking } from "./use-ticking.ts";
import { exitInWords, unconfirmedInWords } from "./words.ts";

type PanelProps = {
  state: State;
  connection: Connection;
  /** Who and where: alice on rock-1. */
  where: string;
  /** Its name; undefined until the allocation is loaded. */
  node: string | undefined;
  back: ReactNode;
  /** Absent: the reader may not repair the allocation. */
  onRepair: (() => void) | undefined;
  /** Something was shown already: it stays in sight. */
  docked: boolean;
  /** The allocation was released: no button opens anything. */
  over: boolean;
  /** Where a bar hides nothing that was written last. */
  free: "top" | "bottom";
};

export function Panel(props: PanelProps) {
  const { state, connection, where, back, onRepair, docked, over } = props;
  switch (state.phase) {
    case "ready":
      return null;
    case "probing":
    case "unresponsive":
    case "pausing":
    case "stopped":
      return <ReconnectBar {...props} state={state} />;
    case "asking":
    case "joining":
    case "checking":
    case "waiting": {
      const { chain, askedAt, lost } = state.round;
      if (lost || docked) return <ReconnectBar {...props} state={state} />;
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
    case "failed": {
      const Frame = docked ? Dock : Middle;
      return (
        <Frame>
          <FailureView failure={state.failure} node={props.node} docked={docked}>
            {docked || isMerelyOver(state) ? null : (
              <ReadinessSteps chain={state.chain} next={{ failedAt: state.failure.hop }} />
            )}
          </FailureView>
          <Unconfirmed bytes={connection.unconfirmed()} />
          <FailureButtons remedy={over ? "none" : remedyOf(state.failure)} connection={connection}>
            {!over && <Further failure={state.failure} onRepair={onRepair} />}
            {back}
          </FailureButtons>
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
function isMerelyOver({ failure, chain }: Extract<State, { phase: "failed" }>): boolean {
  return remedyOf(failure) === "new" && readinessSteps.every((step) => chain[step] === undefined);
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

type FailureViewProps = { failure: Failure; node: string | undefined; docked: boolean; children?: ReactNode };

function FailureView({ failure, node, docked, children }: FailureViewProps) {
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
          <Prose text={node ? adviceFor(node, action) : action} />
        </Fact>
        <Fact name="Where">{sentence(hopInWords(hop))}</Fact>
        <Fact name="Who can fix it">{sentence(ownerInWords(owner))}</Fact>
        <Fact name="To quote">
          <span className="block">
            {titleOf(code)} <span className="font-mono text-sm">{code}</span>
            {correlationId && <CopyableId id={correlationId} label="Copy correlation id" />}
            {correlationId && <TraceLink id={correlationId} />}
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

/** What helps beside trying again. */
function Further({ failure, onRepair }: { failure: Failure; onRepair: (() => void) | undefined }) {
  switch (alsoOffered(failure.code)) {
    case "repair":
      return onRepair ? <Button onClick={onRepair}>Repair</Button> : null;
    case "own_terminals":
      return (
        <Link to="/terminals" className={buttonClasses()}>
          My terminals
        </Link>
      );
    default:
      return null;
  }
}

type FailureButtonsProps = { remedy: Remedy; connection: Connection; children: ReactNode };

function FailureButtons({ remedy, connection, children }: FailureButtonsProps) {
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
      {children}
    </div>
  );
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

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
