// One execution in a list: its state in a line, and on demand why it is in it.

import type { Execution } from "@holdfast/contracts/endpoints/executions";
import { Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { DetailsFooter, DisclosureRow } from "../../design/lists/DisclosureRow.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { CancelExecution } from "./CancelExecution.tsx";
import { ExecutionOutcome } from "./ExecutionOutcome.tsx";
import { executionMark, hasEnded, ranMs } from "./execution-marks.ts";

type ExecutionRowProps = { execution: Execution; opened: boolean; onToggle: () => void };

export function ExecutionRow({ execution, opened, onToggle }: ExecutionRowProps) {
  const { state, word } = executionMark(execution);
  const took = execution.finished_at ? ranMs(execution, 0) : undefined;
  return (
    <DisclosureRow
      opened={opened}
      onToggle={onToggle}
      summary={
        <>
          <span className="font-mono text-sm [overflow-wrap:anywhere]">{execution.step_id}</span>
          <StatusMark state={state}>{word}</StatusMark>
        </>
      }
      note={
        <>
          {execution.agent_name && `${execution.agent_name}, `}
          {took !== undefined && `took ${tookMs(took)}, `}
          <When at={execution.created_at} />
        </>
      }
      actions={!hasEnded(execution) && <CancelExecution execution={execution} />}
      details={() => (
        <>
          <ExecutionOutcome execution={execution} />
          <DetailsFooter correlationId={execution.correlation_id}>
            <Link
              to="/executions/$executionId"
              params={{ executionId: execution.id }}
              className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
            >
              Open execution
              <Icon name="arrow" className="size-3.5" />
            </Link>
          </DetailsFooter>
        </>
      )}
    />
  );
}
