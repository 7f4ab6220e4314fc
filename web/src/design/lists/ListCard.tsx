// A card with a list that grows by cursor: it loads, fails, is empty, or has older entries. One entry at a time is opened.

import { type ReactNode, useState } from "react";
import type { Listing } from "../../listing.ts";
import { Button } from "../controls/Button.tsx";
import { ErrorNotice } from "../feedback/ErrorNotice.tsx";
import { Loading } from "../feedback/Loading.tsx";
import { Card } from "../layout/Card.tsx";

type ListCardProps<Item> = {
  /** In the plural, as the list is called. */
  title: string;
  note?: ReactNode;
  listing: Listing<Item>;
  empty: string;
  row: (item: Item, opening: { opened: boolean; onToggle: () => void }) => ReactNode;
  /** Where the parent opens an entry too. */
  opening?: Opening;
  children?: ReactNode;
};

export type Opening = { opened: string | null; setOpened: (id: string | null) => void };

export function useOpening(): Opening {
  const [opened, setOpened] = useState<string | null>(null);
  return { opened, setOpened };
}

export function ListCard<Item extends { id: string }>(props: ListCardProps<Item>) {
  const { title, note, listing, empty, row, children } = props;
  const own = useOpening();
  const { opened, setOpened } = props.opening ?? own;
  const { items, error } = listing;
  const what = title.toLowerCase();
  return (
    <Card title={title} note={note}>
      {error && (
        <div className="p-5">
          <ErrorNotice error={error} onRetry={listing.refresh} />
        </div>
      )}
      {!items && !error && (
        <div className="px-5">
          <Loading what={what} />
        </div>
      )}
      {items?.length === 0 && <p className="px-5 py-4 text-ink-muted">{empty}</p>}
      <ul aria-label={title}>
        {items?.map((item) =>
          row(item, {
            opened: opened === item.id,
            onToggle: () => setOpened(opened === item.id ? null : item.id),
          }),
        )}
      </ul>
      {listing.hasMore && (
        <p className="px-3 py-2">
          <Button look="quiet" busy={listing.loadingMore} onClick={listing.loadMore}>
            Older {what}
          </Button>
        </p>
      )}
      {children}
    </Card>
  );
}
