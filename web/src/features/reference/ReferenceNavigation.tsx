// The list of operations beside the reference, with a filter for both.

import { controlClasses } from "../../design/forms/Field.tsx";
import { MethodTag } from "./MethodTag.tsx";
import type { Group } from "./operations.ts";

type ReferenceNavigationProps = { groups: readonly Group[]; filter: string; onFilter: (filter: string) => void };

export function ReferenceNavigation({ groups, filter, onFilter }: ReferenceNavigationProps) {
  return (
    <aside className="border-line px-4 pt-6 lg:sticky lg:top-13 lg:h-[calc(100dvh-3.25rem)] lg:overflow-y-auto lg:border-r lg:py-8">
      <input
        type="search"
        value={filter}
        onChange={(event) => onFilter(event.currentTarget.value)}
        placeholder="Filter operations"
        aria-label="Filter operations"
        className={controlClasses}
      />
      <nav aria-label="Operations" className="mt-6 hidden lg:block">
        {groups.map((group) => (
          <div key={group.name} className="mb-5">
            <p className="px-2 pb-1 text-xs font-medium text-ink-muted first-letter:uppercase">{group.name}</p>
            <ul>
              {group.operations.map((operation) => (
                <li key={operation.id}>
                  <a
                    href={`#${operation.id}`}
                    className="flex items-center gap-2 rounded-sm px-2 py-1 text-sm hover:bg-hover"
                  >
                    <MethodTag method={operation.method} />
                    <span className="truncate">{operation.summary}</span>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
    </aside>
  );
}
