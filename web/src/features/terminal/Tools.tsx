// What one does with a terminal besides typing: search, copy, paste, size, colours, ending it.

import type { Ref } from "react";
import { Button, IconButton } from "../../design/Button.tsx";
import { Icon } from "../../design/Icon.tsx";
import { Menu, MenuCheck, MenuChoice, MenuItem, MenuSeparator } from "../../design/Menu.tsx";
import { defaultLook, type Look, type ThemeChoice, withinSizes } from "./look.ts";

type ToolsProps = {
  menu: Ref<HTMLButtonElement>;
  look: Look;
  onLook: (look: Look) => void;
  onSearch: () => void;
  onCopy: () => void;
  onPaste: () => void;
  onSelectAll: () => void;
  onClear: () => void;
  /** Left out where there is no shell to end. */
  onEnd?: () => void;
};

const themes: { value: ThemeChoice; content: string }[] = [
  { value: "page", content: "As the page" },
  { value: "dark", content: "Dark" },
  { value: "light", content: "Light" },
  { value: "contrast", content: "High contrast" },
];

const onDeep =
  "text-on-deep-muted hover:bg-deep-hover hover:text-on-deep data-popup-open:!bg-deep-hover data-popup-open:text-on-deep";

export function Tools({ menu, look, onLook, ...on }: ToolsProps) {
  const size = (fontSize: number) => onLook({ ...look, fontSize: withinSizes(fontSize) });
  return (
    <div className="flex items-center gap-0.5">
      <IconButton label="Search (Ctrl+Shift+F)" onClick={on.onSearch} className={onDeep}>
        <Icon name="search" />
      </IconButton>
      <div className="hidden items-center sm:flex">
        <IconButton label="Smaller text" onClick={() => size(look.fontSize - 1)} className={onDeep}>
          <Icon name="minus" />
        </IconButton>
        <Button
          look="quiet"
          title="Reset the size of the text"
          aria-label={`Size of the text ${look.fontSize}, reset`}
          className="h-8 border-0 px-1 font-mono text-sm text-on-deep-muted hover:bg-deep-hover hover:text-on-deep"
          onClick={() => size(defaultLook.fontSize)}
        >
          {look.fontSize}
        </Button>
        <IconButton label="Larger text" onClick={() => size(look.fontSize + 1)} className={onDeep}>
          <Icon name="plus" />
        </IconButton>
      </div>
      <Menu
        align="end"
        trigger={
          <IconButton ref={menu} label="Terminal menu (Ctrl+Shift+M)" className={onDeep}>
            <Icon name="more" />
          </IconButton>
        }
      >
        <MenuItem onClick={on.onCopy}>
          Copy <Key>Ctrl+Shift+C</Key>
        </MenuItem>
        <MenuItem onClick={on.onPaste}>
          Paste <Key>Ctrl+Shift+V</Key>
        </MenuItem>
        <MenuItem onClick={on.onSelectAll}>Select all</MenuItem>
        <MenuItem onClick={on.onClear}>Clear what has scrolled away</MenuItem>
        <MenuSeparator />
        <div className="sm:hidden">
          <MenuItem closeOnClick={false} onClick={() => size(look.fontSize + 1)}>
            Larger text
          </MenuItem>
          <MenuItem closeOnClick={false} onClick={() => size(look.fontSize - 1)}>
            Smaller text
          </MenuItem>
          <MenuSeparator />
        </div>
        <MenuChoice
          label="Colours"
          value={look.theme}
          onChoose={(theme) => onLook({ ...look, theme })}
          choices={themes}
        />
        <MenuSeparator />
        <MenuCheck checked={look.screenReader} onChange={(screenReader) => onLook({ ...look, screenReader })}>
          For a screen reader
        </MenuCheck>
        {on.onEnd && (
          <>
            <MenuSeparator />
            <MenuItem danger onClick={on.onEnd}>
              End the shell
            </MenuItem>
          </>
        )}
      </Menu>
    </div>
  );
}

function Key({ children }: { children: string }) {
  return <kbd className="ml-auto pl-4 font-mono text-xs text-ink-muted pointer-coarse:hidden">{children}</kbd>;
}
