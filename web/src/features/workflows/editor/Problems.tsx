// What is wrong with the draft; a click leads to the place.

import type { Problem } from "@holdfast/workflows/document/problem";
import { StatusMark } from "../../../design/values/StatusMark.tsx";

const SHOWN = 8;

type ProblemsProps = { problems: readonly Problem[]; onGoTo: (place: { line: number; column: number }) => void };

export function Problems({ problems, onGoTo }: ProblemsProps) {
  return (
    <div className="border-t border-line px-4 py-2.5 text-sm">
      <p role="status">
        {problems.length === 0 ? (
          <StatusMark state="ok">No problems</StatusMark>
        ) : (
          <StatusMark state="failed">
            {problems.length === 1 ? "1 problem" : `${problems.length} problems`}
          </StatusMark>
        )}
      </p>
      {problems.length > 0 && (
        <ul aria-label="Problems" className="mt-1 space-y-0.5">
          {problems.slice(0, SHOWN).map((problem) => (
            <li key={`${problem.line}:${problem.column}:${problem.code}:${problem.message}`}>
              <button
                type="button"
                onClick={() => onGoTo({ line: problem.line, column: problem.column })}
                className="rounded-sm text-left hover:underline"
              >
                <span className="font-mono text-ink-muted">
                  {problem.line}:{problem.column}
                </span>{" "}
                {problem.path && <span className="font-mono">{problem.path}</span>} {problem.message}
              </button>
            </li>
          ))}
          {problems.length > SHOWN && <li className="text-ink-muted">and {problems.length - SHOWN} more</li>}
        </ul>
      )}
    </div>
  );
}
