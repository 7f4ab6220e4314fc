// What an action does and does not do, as people read it before they start it.

import type { Action } from "@holdfast/contracts/reasons/actions";
import { Prose } from "../../design/layout/Prose.tsx";

export function Effects({ does, doesNot }: Pick<Action, "does" | "doesNot">) {
  return (
    <>
      <List label="What it does" items={does} />
      <List label="What it does not do" items={doesNot} />
    </>
  );
}

function List({ label, items }: { label: string; items: readonly string[] }) {
  return (
    <ul aria-label={label} className="list-disc space-y-1 pl-4">
      {items.map((item) => (
        <li key={item}>
          <Prose text={item} />
        </li>
      ))}
    </ul>
  );
}
