// Finds text in the scrollback of the terminal: from the newest up with Enter, down with Shift+Enter.

import { useEffect, useRef, useState } from "react";
import { IconButton } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import type { Screen } from "./screen.ts";

type SearchBarProps = { screen: Screen; found: { index: number; count: number }; onClose: () => void };

export function SearchBar({ screen, found, onClose }: SearchBarProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    return () => screen.endSearch();
  }, [screen]);
  const find = (direction: "next" | "previous") => text && screen.find(text, direction);
  return (
    <search
      aria-label="Search in the terminal"
      className="absolute top-2 right-2 left-2 z-20 flex items-center gap-1 rounded-md border border-line-strong bg-surface p-1 text-ink shadow-raised sm:left-auto sm:w-96"
    >
      <input
        ref={field}
        value={text}
        aria-label="Text to find"
        placeholder="Find"
        spellCheck={false}
        autoComplete="off"
        className="h-8 min-w-0 flex-1 rounded-sm bg-transparent px-2 font-mono text-sm outline-offset-0"
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          if (currentTarget.value) screen.find(currentTarget.value, "previous");
          else screen.endSearch();
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter") find(event.shiftKey ? "next" : "previous");
        }}
      />
      <span role="status" className="px-1 text-sm whitespace-nowrap text-ink-muted tabular-nums">
        {text && (found.count === 0 ? "nothing found" : `${Math.max(0, found.index) + 1} of ${found.count}`)}
      </span>
      <IconButton label="Previous match, further up" onClick={() => find("previous")}>
        <Icon name="chevron" className="size-4 rotate-180" />
      </IconButton>
      <IconButton label="Next match, further down" onClick={() => find("next")}>
        <Icon name="chevron" />
      </IconButton>
      <IconButton label="End search" onClick={onClose}>
        <Icon name="close" />
      </IconButton>
    </search>
  );
}
