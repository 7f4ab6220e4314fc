// What the organization's listings share: a line of meaning, the action, and the states of loading.

import type { ReactNode } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageTitle } from "../../design/layout/PageHeader.tsx";
import type { Listing } from "../../listing.ts";

type TabFrameProps<Item> = {
  title: string;
  intro: string;
  action?: ReactNode;
  listing: Listing<Item>;
  empty?: ReactNode;
  children: (items: Item[]) => ReactNode;
};

export function TabFrame<Item>({ title, intro, action, listing, empty, children }: TabFrameProps<Item>) {
  const { items, error, hasMore, loadMore, loadingMore, refresh } = listing;
  return (
    <section aria-label={title}>
      <PageTitle>{title}</PageTitle>
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-xl text-ink-muted">{intro}</p>
        {action}
      </div>
      {error && <ErrorNotice error={error} onRetry={refresh} />}
      {!items && !error && <Loading what={title.toLowerCase()} />}
      {items && (items.length === 0 && empty ? empty : children(items))}
      {hasMore && (
        <Button className="mt-4" busy={loadingMore} onClick={loadMore}>
          Load more
        </Button>
      )}
    </section>
  );
}
