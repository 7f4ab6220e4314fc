// Every terminal that counts towards the reader's limit, in all organizations: attached or detached, when it ends by
// itself, and how to go back to it or end it.

import type { MyTerminal } from "@holdfast/contracts/endpoints/terminals";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { TimeLeft, When } from "../../design/values/When.tsx";
import { chooseOrganization, useActing } from "../../session.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { EndDialog } from "./EndDialog.tsx";
import { useMyTerminals } from "./queries.ts";
import { TerminalLink } from "./TerminalLink.tsx";
import { terminalMark } from "./words.ts";

export function MyTerminalsPage() {
  const { data, error, refetch } = useMyTerminals();
  const [ending, setEnding] = useState<MyTerminal | null>(null);
  return (
    <>
      <PageHeader title="My terminals">
        {data
          ? `${data.items.length} of ${data.limit} open. Detached terminals count too, until they end.`
          : "Your open terminals, in all organizations."}{" "}
        <LiveMark />
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="your terminals" />}
      {data?.items.length === 0 && (
        <EmptyState
          icon={<Icon name="terminal" />}
          title="You have no open terminals"
          actions={
            <Link to="/allocations" className={buttonClasses("primary")}>
              Go to allocations
            </Link>
          }
        >
          <p>
            Open one from an allocation, or the console of a VM from its lease. It is listed here until it ends.
          </p>
        </EmptyState>
      )}
      {data && data.items.length > 0 && <TerminalTable terminals={data.items} onEnd={setEnding} />}
      {ending && (
        <EndDialog
          terminalId={ending.id}
          where={whereOf(ending)}
          isConsole={ending.lease_id !== null}
          orgId={ending.organization.id}
          onClose={() => setEnding(null)}
        />
      )}
    </>
  );
}

const whereOf = ({ username, node_name }: MyTerminal) => `${username} on ${node_name}`;

type TerminalTableProps = { terminals: MyTerminal[]; onEnd: (terminal: MyTerminal) => void };

function TerminalTable({ terminals, onEnd }: TerminalTableProps) {
  const { org } = useActing();
  const elsewhere = terminals.some(({ organization }) => organization.id !== org.id);
  const columns = ["Terminal", "State", { wide: "Opened" }, <ActionsHeader key="actions" />];
  return (
    <Table label="My terminals" columns={columns}>
      {terminals.map((terminal) => (
        <tr key={terminal.id}>
          <Cell>
            <TerminalLink
              terminal={terminal}
              onClick={() => chooseOrganization(terminal.organization.id)}
              className="rounded-sm font-medium [overflow-wrap:anywhere] hover:underline"
            >
              <span className="font-mono text-sm">{terminal.username}</span> on {terminal.node_name}
            </TerminalLink>
            {elsewhere && <span className="block text-sm text-ink-muted">{terminal.organization.name}</span>}
          </Cell>
          <Cell>
            <StateOf terminal={terminal} />
          </Cell>
          <Cell className={wideOnly}>
            <span className="text-ink-muted">
              <When at={terminal.created_at} exact />
            </span>
          </Cell>
          <Cell className="w-0 px-2 py-1">
            <span className="flex justify-end gap-2">
              <OpenAgain terminal={terminal} />
              <Button
                disabled={terminal.ending}
                aria-label={`End the terminal of ${whereOf(terminal)}`}
                onClick={() => onEnd(terminal)}
              >
                End
              </Button>
            </span>
          </Cell>
        </tr>
      ))}
    </Table>
  );
}

function StateOf({ terminal }: { terminal: MyTerminal }) {
  const { state, word } = terminalMark(terminal);
  const { detached_at, ends_at, ending } = terminal;
  return (
    <>
      <StatusMark state={state}>{word}</StatusMark>
      {detached_at && !ending && (
        <span className="block text-sm text-ink-muted">
          <When at={detached_at} />
          {ends_at && (
            <>
              , ends in <TimeLeft until={ends_at} />
            </>
          )}
        </span>
      )}
      {terminal.attached && ends_at && !ending && (
        <span className="block text-sm text-ink-muted">
          ends <When at={ends_at} /> at the latest
        </span>
      )}
    </>
  );
}

/** The address of another organization's allocation is found only while one acts there. */
function OpenAgain({ terminal }: { terminal: MyTerminal }) {
  if (terminal.state !== "open" || terminal.ending) return null;
  return (
    <TerminalLink
      terminal={terminal}
      again
      onClick={() => chooseOrganization(terminal.organization.id)}
      aria-label={`${terminal.attached ? "Take over" : "Open"} the terminal of ${whereOf(terminal)}`}
      className={buttonClasses("secondary")}
    >
      {terminal.attached ? "Take over" : "Open"}
    </TerminalLink>
  );
}
