// Shown in place of what a page is about while it loads, if it was not found, or if it could not be read.

import { codeOf } from "@holdfast/contracts/client";
import { EmptyState } from "./EmptyState.tsx";
import { ErrorNotice } from "./ErrorNotice.tsx";
import { Loading } from "./Loading.tsx";

type NotLoadedProps = {
  /** As in "Node not found". */
  noun: string;
  query: { error: unknown; refetch: () => unknown };
  /** Why it may not have been found. */
  explanation: string;
};

export function NotLoaded({ noun, query: { error, refetch }, explanation }: NotLoadedProps) {
  if (!error) return <Loading what={`the ${noun}`} />;
  const code = codeOf(error);
  // A malformed id is rejected before it is looked up.
  if (code !== "not_found" && code !== "invalid_request") {
    return <ErrorNotice error={error} onRetry={() => void refetch()} />;
  }
  return (
    <EmptyState title={`${noun.charAt(0).toUpperCase()}${noun.slice(1)} not found`}>
      <p>{explanation}</p>
    </EmptyState>
  );
}
