// A terminal over the whole window, whatever it is at: the shell of an allocation or the console of a VM. The address keeps
// which one, so that a reload finds it again; it keeps no secret.

import type { State } from "@holdfast/terminal-client/states";
import { type ReactNode, useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from "react";
import { Icon } from "../../design/controls/Icon.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { writeClipboard } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useIsDark } from "../../theme.ts";
import { HeaderNotices } from "../shell/Notices.tsx";
import { EndDialog } from "./EndDialog.tsx";
import { KeyBar } from "./KeyBar.tsx";
import { type Look, recallLook, rememberLook } from "./look.ts";
import { Panel } from "./Panels.tsx";
import { SearchBar } from "./SearchBar.tsx";
import { Tools } from "./Tools.tsx";
import { palettes } from "./themes.ts";
import { type TerminalAt, useTerminal } from "./use-terminal.ts";
import { useVisibleHeight } from "./use-visible-height.ts";
import { markOf } from "./words.ts";

type TerminalViewProps = {
  at: TerminalAt;
  /** The one that the address names. */
  session: string | undefined;
  onSession: (session: string) => void;
  /** Who and where: alice on rock-1. Empty until it is loaded. */
  where: string;
  node: string | undefined;
  /** `look` is that of its place: in the header an arrow, in a panel a button. */
  back: (look: "arrow" | "button", content: ReactNode) => ReactNode;
  /** No button opens another one. */
  over: boolean;
  /** Absent: there is nothing that the reader could repair. */
  repair?: ((options: { onClose: () => void; onRepaired: () => void }) => ReactNode) | undefined;
};

export function TerminalView({ at, session, onSession, where, node, back, over, repair }: TerminalViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const menu = useRef<HTMLButtonElement>(null);
  const height = useVisibleHeight();
  const [look, setLook] = useLook();
  const dark = useIsDark();
  const palette = look.theme === "page" ? (dark ? "dark" : "light") : look.theme;
  const [title, setTitle] = useState("");
  const [bells, setBells] = useState(0);
  const [searching, setSearching] = useState(false);
  const [found, setFound] = useState({ index: -1, count: 0 });
  const [ctrl, setCtrl] = useState(false);
  const [ending, setEnding] = useState(false);
  const [repairing, setRepairing] = useState(false);

  const terminal = useTerminal({
    at,
    shell: session,
    place,
    look: { ...look, palette },
    on: {
      onTitle: setTitle,
      onBell: () => setBells((count) => count + 1),
      onSearch: () => setSearching(true),
      onMenu: () => menu.current?.click(),
      onFound: setFound,
      onCtrlUsed: () => setCtrl(false),
    },
  });
  const state = useClientState(terminal?.connection);
  const screen = terminal?.screen;
  const shell = state?.phase === "ready" || state?.phase === "unresponsive" ? state.shell : undefined;
  const [shown, setShown] = useState(false);
  const remember = useEffectEvent(onSession);
  useEffect(() => {
    if (!shell) return;
    setShown(true);
    screen?.focus();
    remember(shell);
  }, [shell, screen]);

  const holdCtrl = (held: boolean) => {
    setCtrl(held);
    screen?.holdCtrl(held);
  };
  const paste = async () => {
    try {
      screen?.paste(await navigator.clipboard.readText());
    } catch {
      toast("The browser pastes by key only: Ctrl+Shift+V, or ⌘V");
    }
    screen?.focus();
  };
  const endSearch = () => {
    setSearching(false);
    screen?.focus();
  };

  return (
    <main className="flex flex-col bg-page" style={{ height }}>
      <title>{`${title || where || "Terminal"} · Holdfast`}</title>
      <header className="on-deep flex h-11 shrink-0 items-center gap-3 bg-deep pr-1.5 pl-2 text-on-deep">
        {back("arrow", <Icon name="arrow" className="size-4 rotate-180" />)}
        <h1 className="min-w-0 flex-1 truncate" title={title || undefined}>
          <span className="font-medium">{where || "Terminal"}</span>
          {title && <span className="ml-3 text-on-deep-muted max-sm:hidden">{title}</span>}
        </h1>
        <HeaderNotices />
        {state && <Standing state={state} />}
        <Tools
          menu={menu}
          look={look}
          onLook={setLook}
          onSearch={() => setSearching(true)}
          onCopy={() => void writeClipboard(screen?.selection() ?? "").then(() => screen?.focus())}
          onPaste={() => void paste()}
          onSelectAll={() => screen?.selectAll()}
          onClear={() => screen?.clear()}
          keyboard={() => screen?.keyboard()}
          onEnd={shell ? () => setEnding(true) : undefined}
        />
      </header>
      <div className="relative flex min-h-0 flex-1 flex-col overflow-hidden">
        <div className="relative min-h-0 flex-1" style={{ background: palettes[palette].theme.background }}>
          <div className="absolute inset-0 py-1.5 pl-2">
            <div ref={place} data-testid="terminal" className="size-full" />
          </div>
          {bells > 0 && (
            <div key={bells} aria-hidden="true" className="bell-flash pointer-events-none absolute inset-0" />
          )}
          {searching && screen && <SearchBar screen={screen} found={found} onClose={endSearch} />}
        </div>
        {state && terminal && (
          <Panel
            state={state}
            connection={{
              ...terminal.connection,
              openNew: () => {
                setShown(false);
                setTitle("");
                terminal.connection.openNew();
              },
            }}
            where={where}
            node={node}
            onRepair={repair ? () => setRepairing(true) : undefined}
            docked={shown}
            free={screen?.isWrittenHigh() ? "bottom" : "top"}
            over={over}
            back={back("button", "Back")}
          />
        )}
      </div>
      {screen && shell && <KeyBar screen={screen} ctrl={ctrl} onCtrl={holdCtrl} />}
      {ending && shell && (
        <EndDialog
          terminalId={shell}
          isConsole={"leaseId" in at}
          onClose={() => setEnding(false)}
          afterwards={() => screen?.keyboard()}
        />
      )}
      {repairing &&
        terminal &&
        repair?.({
          onClose: () => setRepairing(false),
          onRepaired: () => {
            setRepairing(false);
            terminal.connection.tryAgain();
          },
        })}
    </main>
  );
}

function Standing({ state }: { state: State }) {
  const { state: mark, word } = markOf(state);
  return (
    <span role="status" data-phase={state.phase} className="rounded-sm bg-surface px-2 py-0.5 text-sm">
      <StatusMark state={mark}>{word}</StatusMark>
    </span>
  );
}

function useClientState(
  connection: { state: { get(): State; subscribe(on: () => void): () => void } } | undefined,
) {
  return useSyncExternalStore(
    (listener) => connection?.state.subscribe(listener) ?? (() => {}),
    () => connection?.state.get(),
  );
}

function useLook(): [Look, (look: Look) => void] {
  const [look, setLook] = useState(recallLook);
  return [
    look,
    (next) => {
      setLook(next);
      rememberLook(next);
    },
  ];
}
