// What one does with a terminal besides typing: search, copy, paste, size, colours, ending it.

import { type Ref, type SyntheticEvent, useRef } from "react";
import { IconButton } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { Menu, MenuCheck, MenuChoice, MenuItem, MenuSeparator } from "../../design/controls/Menu.tsx";
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
  /** Where keys are typed. */
  keyboard: () => HTMLElement | undefined;
  /** Left out where there is no shell to end. */
  onEnd?: () => void;
};

const themes: { value: ThemeChoice; content: string }[] = [
  { value: "page", content: "As the page" },
  { value: "dark", content: "Dark" },
  { value: "light", content: "Light" },
  { value: "contrast", content: "High contrast" },
];

export function Tools({ menu, look, onLook, ...on }: ToolsProps) {
  const size = (fontSize: number) => onLook({ ...look, fontSize: withinSizes(fontSize) });
  /** The question is asked when the menu is gone: from there the keyboard goes back to the shell. */
  const ending = useRef(false);
  // Pressed with the mouse, they leave the keyboard where it is: what is typed next is for the shell.
  const sizing = (fontSize: number) => ({ onClick: () => size(fontSize), onMouseDown: keepKeyboard });
  return (
    <div className="flex items-center gap-0.5">
      <IconButton label="Search (Ctrl+Shift+F)" onClick={on.onSearch} onDeep>
        <Icon name="search" />
      </IconButton>
      <div className="hidden items-center sm:flex">
        <IconButton label="Smaller text" {...sizing(look.fontSize - 1)} onDeep>
          <Icon name="minus" />
        </IconButton>
        <button
          type="button"
          title="Reset the size of the text"
          aria-label={`Size of the text ${look.fontSize}, reset`}
          className="h-8 rounded-md px-1.5 font-mono text-sm text-on-deep-muted transition-colors hover:bg-deep-hover hover:text-on-deep"
          {...sizing(defaultLook.fontSize)}
        >
          {look.fontSize}
        </button>
        <IconButton label="Larger text" {...sizing(look.fontSize + 1)} onDeep>
          <Icon name="plus" />
        </IconButton>
      </div>
      <Menu
        align="end"
        afterwards={on.keyboard}
        onClosed={() => {
          if (ending.current) on.onEnd?.();
          ending.current = false;
        }}
        trigger={
          <IconButton ref={menu} label="Terminal menu (Ctrl+Shift+M)" onDeep>
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
        <MenuItem onClick={on.onClear}>Clear scrollback</MenuItem>
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
            <MenuItem
              danger
              onClick={() => {
                ending.current = true;
              }}
            >
              End the shell
            </MenuItem>
          </>
        )}
      </Menu>
    </div>
  );
}

const keepKeyboard = (event: SyntheticEvent) => event.preventDefault();

function Key({ children }: { children: string }) {
  return <kbd className="ml-auto pl-4 font-mono text-xs text-ink-muted pointer-coarse:hidden">{children}</kbd>;
}
