// Says that there is nothing, why, and what to do next.

import type { ReactNode } from "react";

type EmptyStateProps = { icon?: ReactNode; title: string; children: ReactNode; actions?: ReactNode };

export function EmptyState({ icon, title, children, actions }: EmptyStateProps) {
  return (
    <section className="rounded-lg border border-dashed border-line-strong/60 bg-surface px-6 py-12 sm:px-10">
      <div className="mx-auto max-w-xl">
        {icon && (
          <span className="mb-4 inline-flex size-10 items-center justify-center rounded-md bg-kelp-soft text-kelp">
            {icon}
          </span>
        )}
        <h2 className="text-xl font-semibold tracking-tight">{title}</h2>
        <div className="mt-2 space-y-3 text-ink-muted">{children}</div>
        {actions && <div className="mt-6 flex flex-wrap gap-2">{actions}</div>}
      </div>
    </section>
  );
}
