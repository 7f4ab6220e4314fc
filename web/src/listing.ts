// A listing by cursor as a growing array.

import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";

type Page<Item> = { items: Item[]; next_cursor: string | null };

type ListingOptions<Item> = {
  key: QueryKey;
  page: (at: { cursor: string | undefined; signal: AbortSignal }) => Promise<Page<Item>>;
  enabled?: boolean;
  /** Refetch interval in milliseconds. */
  refetchInterval?: number;
};

export type Listing<Item> = ReturnType<typeof useListing<Item>>;

export function useListing<Item>({ key, page, enabled = true, refetchInterval }: ListingOptions<Item>) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => page({ cursor: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    enabled,
    refetchInterval,
  });
  return {
    items: query.data?.pages.flatMap((each) => each.items),
    error: query.error,
    hasMore: query.hasNextPage,
    loadMore: () => void query.fetchNextPage(),
    loadingMore: query.isFetchingNextPage,
    refresh: () => void query.refetch(),
    refreshing: query.isFetching,
  };
}
