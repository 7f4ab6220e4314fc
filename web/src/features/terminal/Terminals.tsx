// The last terminals of an allocation or a node: how each came up, where one stopped, what to do about it.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { buttonClasses } from "../../design/controls/Button.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { DetailsFooter, DisclosureRow } from "../../design/lists/DisclosureRow.tsx";
import { ListCard } from "../../design/lists/ListCard.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { useMe } from "../../session.ts";
import { TaskLink } from "../tasks/TaskLink.tsx";
import { TraceLink } from "../trace/TraceLink.tsx";
import { chainOf } from "./chain.ts";
import { hopInWords, ownerInWords } from "./failures.ts";
import { type TerminalsOf, useTerminals } from "./queries.ts";
import { ReadinessSteps } from "./ReadinessSteps.tsx";
import { TerminalLink } from "./TerminalLink.tsx";
import { exitInWords, terminalMark } from "./words.ts";

type TerminalsProps = { of: TerminalsOf; title?: string; empty?: string };

export function Terminals({
  of,
  title = "Terminals",
  empty = "No terminal was opened here yet.",
}: TerminalsProps) {
  return (
    <ListCard
      title={title}
      listing={useTerminals(of)}
      empty={empty}
      row={(terminal, row) => <Row key={terminal.id} terminal={terminal} {...row} />}
    />
  );
}

function unreached({ state, failure, chain }: TerminalSession): "awaited" | "never" | { failedAt: string } {
  // One that failed after it was ready stopped at no step of the way.
  if (state === "failed" && !chain.pty_ready) return { failedAt: failure?.hop ?? "" };
  return state === "opening" ? "awaited" : "never";
}

type RowProps = { terminal: TerminalSession; opened: boolean; onToggle: () => void };

function Row({ terminal, opened, onToggle }: RowProps) {
  const me = useMe();
  const { state, word } = terminalMark(terminal);
  const chain = chainOf(terminal);
  const { failure, exit } = terminal;
  return (
    <DisclosureRow
      opened={opened}
      onToggle={onToggle}
      summary={
        <>
          <StatusMark state={state}>{word}</StatusMark>
          <span className="min-w-0 truncate text-sm text-ink-muted">{terminal.opened_by}</span>
        </>
      }
      note={
        <>
          {chain.pty_ready !== undefined && <>ready after {tookMs(chain.pty_ready)}, </>}
          <When at={terminal.created_at} />
        </>
      }
      actions={
        terminal.state === "open" &&
        terminal.opened_by === me.email && (
          <TerminalLink terminal={terminal} again className={buttonClasses("secondary", "-my-1")}>
            {terminal.attached ? "Take over" : "Go back to it"}
          </TerminalLink>
        )
      }
      details={() => (
        <>
          <ReadinessSteps chain={chain} next={unreached(terminal)} />
          {failure && <FailureDetails failure={failure} node={terminal.node_name} />}
          <DetailsFooter correlationId={terminal.correlation_id}>
            <TraceLink id={terminal.correlation_id} />
            {terminal.task_id && <TaskLink taskId={terminal.task_id}>Its task on the node</TaskLink>}
          </DetailsFooter>
        </>
      )}
    >
      {failure && (
        <p className="mt-0.5 text-sm text-ink-muted sm:ml-4.5">
          <FailureLine failure={failure} />
        </p>
      )}
      {!failure && exit && <p className="mt-0.5 text-sm text-ink-muted sm:ml-4.5">{exitInWords(exit)}</p>}
    </DisclosureRow>
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

function FailureDetails({ failure, node }: { failure: StoredFailure; node: string }) {
  const { code, title, hop, owner, correlation_id } = failure;
  const entry = isTerminalFailure(code) ? terminalFailures[code] : undefined;
  return (
    <p className="text-sm">
      {entry && (
        <>
          <Prose text={adviceFor(node, entry.action)} />{" "}
        </>
      )}
      <span className="text-ink-muted">
        Stopped at: {hopInWords(hop)}. Can be fixed by {ownerInWords(owner)}. {title},{" "}
        <span className="font-mono">{code}</span>{" "}
        <CopyableId id={correlation_id} label="Copy the failure's correlation id" />{" "}
        <TraceLink id={correlation_id} of="failure" />
      </span>
    </p>
  );
}
