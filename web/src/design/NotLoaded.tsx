// In place of a thing that a page is about, as long as it is not there: it loads, does not exist, or could not be read.

import { codeOf } from "@holdfast/contracts/client";
import { EmptyState } from "./EmptyState.tsx";
import { ErrorNotice } from "./ErrorNotice.tsx";
import { Loading } from "./Loading.tsx";

type NotLoadedProps = {
  /** As in "There is no such node here". */
  noun: string;
  query: { error: unknown; refetch: () => unknown };
  /** Why the address may lead to nothing. */
  explanation: string;
};

export function NotLoaded({ noun, query: { error, refetch }, explanation }: NotLoadedProps) {
  if (!error) return <Loading what={`the ${noun}`} />;
  const code = codeOf(error);
  // An id of another form is refused before it is looked for.
  if (code !== "not_found" && code !== "invalid_request") {
    return <ErrorNotice error={error} onRetry={() => void refetch()} />;
  }
  return (
    <EmptyState title={`There is no such ${noun} here`}>
      <p>{explanation}</p>
    </EmptyState>
  );
}
