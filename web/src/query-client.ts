// How responses are cached and when a call is retried automatically.

import { CallError, codeOf } from "@holdfast/contracts/client";
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";

export function createQueryClient({ onSignedOut }: { onSignedOut: () => void }): QueryClient {
  const onError = (error: unknown) => {
    if (codeOf(error) === "unauthenticated") onSignedOut();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // The browser's idea of being online says nothing about our server; connection.ts knows better.
      queries: { networkMode: "always", staleTime: 10_000, retry: isWorthRepeating },
      mutations: { networkMode: "always" },
    },
  });
}

/** Reads only. connection.ts retries an unreachable server, not each query. */
function isWorthRepeating(failures: number, error: unknown): boolean {
  return failures < 2 && error instanceof CallError && error.envelope.retryable && error.status !== 429;
}
