// The last terminals of an allocation or a node: how each came up, where one stopped, what to do about it.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { Button, buttonClasses } from "../../design/Button.tsx";
import { Card } from "../../design/Card.tsx";
import { CopyableId } from "../../design/Copy.tsx";
import { classes } from "../../design/classes.ts";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { Icon } from "../../design/Icon.tsx";
import { Loading } from "../../design/Loading.tsx";
import { Prose } from "../../design/Prose.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { tookMs } from "../../design/time.ts";
import { When } from "../../design/When.tsx";
import { useMe } from "../../session.ts";
import { chainOf } from "./chain.ts";
import { hopInWords, ownerInWords } from "./failures.ts";
import { type TerminalsOf, useTerminals } from "./queries.ts";
import { ReadinessSteps } from "./ReadinessSteps.tsx";
import { exitInWords, terminalMark } from "./words.ts";

export function Terminals({ of }: { of: TerminalsOf }) {
  const listing = useTerminals(of);
  const [opened, setOpened] = useState<string | null>(null);
  const { items } = listing;
  return (
    <Card title="Terminals">
      {listing.error && (
        <div className="p-5">
          <ErrorNotice error={listing.error} onRetry={listing.refresh} />
        </div>
      )}
      {!items && !listing.error && (
        <div className="px-5">
          <Loading what="terminals" />
        </div>
      )}
      {items?.length === 0 && <p className="px-5 py-4 text-ink-muted">No terminal was opened here yet.</p>}
      <ul aria-label="Terminals">
        {items?.map((terminal) => (
          <Row
            key={terminal.id}
            terminal={terminal}
            opened={opened === terminal.id}
            onToggle={() => setOpened(opened === terminal.id ? null : terminal.id)}
          />
        ))}
      </ul>
      {listing.hasMore && (
        <p className="px-3 py-2">
          <Button look="quiet" busy={listing.loadingMore} onClick={listing.loadMore}>
            Older terminals
          </Button>
        </p>
      )}
    </Card>
  );
}

function unreached({ state, failure, chain }: TerminalSession): "awaited" | "never" | { failedAt: string } {
  // One that failed after it was ready stopped at no step of the way.
  if (state === "failed" && !chain.pty_ready) return { failedAt: failure?.hop ?? "" };
  return state === "opening" ? "awaited" : "never";
}

type RowProps = { terminal: TerminalSession; opened: boolean; onToggle: () => void };

function Row({ terminal, opened, onToggle }: RowProps) {
  const id = useId();
  const me = useMe();
  const { state, word } = terminalMark(terminal);
  const chain = chainOf(terminal);
  const { failure, exit } = terminal;
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <button
          type="button"
          onClick={onToggle}
          aria-expanded={opened}
          aria-controls={id}
          className="-ml-1.5 flex min-w-0 flex-1 items-center gap-2 rounded-sm text-left"
        >
          <Icon
            name="chevron"
            className={classes("size-4 shrink-0 text-ink-muted transition-transform", !opened && "-rotate-90")}
          />
          <span className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            <StatusMark state={state}>{word}</StatusMark>
            <span className="min-w-0 truncate text-sm text-ink-muted">{terminal.opened_by}</span>
            <span className="sr-only">: details</span>
          </span>
        </button>
        <span className="text-sm text-ink-muted max-sm:order-last max-sm:ml-4.5 max-sm:basis-full">
          {chain.pty_ready !== undefined && <>ready after {tookMs(chain.pty_ready)}, </>}
          <When at={terminal.created_at} />
        </span>
        {terminal.state === "open" && terminal.opened_by === me.email && (
          <Link
            to="/allocations/$allocationId/terminal"
            params={{ allocationId: terminal.allocation_id }}
            search={{ session: terminal.id }}
            className={buttonClasses("secondary", "-my-1")}
          >
            {terminal.attached ? "Take over" : "Go back to it"}
          </Link>
        )}
      </div>
      {failure && (
        <p className="mt-0.5 text-sm text-ink-muted sm:ml-4.5">
          <FailureLine failure={failure} />
        </p>
      )}
      {!failure && exit && <p className="mt-0.5 text-sm text-ink-muted sm:ml-4.5">{exitInWords(exit)}</p>}
      <div id={id} hidden={!opened} className="mt-3 space-y-3 sm:ml-4.5">
        {opened && (
          <>
            <ReadinessSteps chain={chain} next={unreached(terminal)} />
            {failure && <FailureDetails failure={failure} />}
            <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-1 text-sm text-ink-muted">
              <span className="flex flex-wrap items-center gap-x-1.5">
                Correlation id <CopyableId id={terminal.correlation_id} label="Copy correlation id" />
              </span>
              {terminal.task_id && (
                <Link
                  to="/tasks/$taskId"
                  params={{ taskId: terminal.task_id }}
                  className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
                >
                  Its task on the node
                  <Icon name="arrow" className="size-3.5" />
                </Link>
              )}
            </div>
          </>
        )}
      </div>
    </li>
  );
}

type StoredFailure = NonNullable<TerminalSession["failure"]>;

function FailureLine({ failure: { code, detail } }: { failure: StoredFailure }) {
  const message = isTerminalFailure(code) ? terminalFailures[code].message : code;
  return (
    <>
      <Prose text={message} /> {detail && detail !== message && <Prose text={detail} />}
    </>
  );
}

function FailureDetails({ failure: { code, title, hop, owner, correlation_id } }: { failure: StoredFailure }) {
  const entry = isTerminalFailure(code) ? terminalFailures[code] : undefined;
  return (
    <p className="text-sm">
      {entry && (
        <>
          <Prose text={entry.action} />{" "}
        </>
      )}
      <span className="text-ink-muted">
        Stopped at: {hopInWords(hop)}. Can be fixed by {ownerInWords(owner)}. {title},{" "}
        <span className="font-mono">{code}</span>{" "}
        <CopyableId id={correlation_id} label="Copy the failure's correlation id" />
      </span>
    </p>
  );
}
