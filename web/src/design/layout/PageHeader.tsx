// The top of a page: its title, which is the document's title too, one line of meaning, and actions.

import type { ReactNode } from "react";

type PageHeaderProps = { title: string; above?: ReactNode; children?: ReactNode; actions?: ReactNode };

export function PageHeader({ title, above, children, actions }: PageHeaderProps) {
  return (
    <header className="mb-6 flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <PageTitle>{title}</PageTitle>
      <div className="min-w-0 max-w-2xl">
        {above && <div className="mb-1 text-sm text-ink-muted">{above}</div>}
        <h1 className="text-2xl font-semibold tracking-tight [overflow-wrap:anywhere]">{title}</h1>
        {children && <div className="mt-1 text-ink-muted">{children}</div>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </header>
  );
}

export function PageTitle({ children }: { children: string }) {
  return <title>{`${children} · Holdfast`}</title>;
}
