// A shell of an allocation, over the whole window. The address keeps which one, so that a reload finds
// it again; it keeps no secret.

import type { State } from "@holdfast/terminal-client/states";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { writeClipboard } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useActing } from "../../session.ts";
import { useIsDark } from "../../theme.ts";
import { canRepair } from "../allocations/can-repair.ts";
import { useAllocation } from "../allocations/queries.ts";
import { RepairDialog } from "../allocations/RepairDialog.tsx";
import { HeaderNotices } from "../shell/Notices.tsx";
import { EndDialog } from "./EndDialog.tsx";
import { KeyBar } from "./KeyBar.tsx";
import { type Look, recallLook, rememberLook } from "./look.ts";
import { Panel } from "./Panels.tsx";
import { SearchBar } from "./SearchBar.tsx";
import { Tools } from "./Tools.tsx";
import { palettes } from "./themes.ts";
import { useTerminal } from "./use-terminal.ts";
import { useVisibleHeight } from "./use-visible-height.ts";
import { markOf } from "./words.ts";

const route = getRouteApi("/full-window/allocations/$allocationId/terminal");

export function TerminalPage() {
  const { allocationId } = route.useParams();
  return <Terminal key={allocationId} allocationId={allocationId} />;
}

function Terminal({ allocationId }: { allocationId: string }) {
  const { session } = route.useSearch();
  const navigate = route.useNavigate();
  const allocation = useAllocation(allocationId).data;
  const { may } = useActing();
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
    allocationId,
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
  useEffect(() => {
    if (!shell) return;
    setShown(true);
    screen?.focus();
    void navigate({ search: { session: shell }, replace: true });
  }, [shell, screen, navigate]);

  const where = allocation ? `${allocation.username} on ${allocation.node_name}` : "";
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
        <Link
          to="/allocations/$allocationId"
          params={{ allocationId }}
          aria-label="Back to the allocation"
          title="Back to the allocation; the shell goes on for a while"
          className="flex size-8 shrink-0 items-center justify-center rounded-md text-on-deep-muted hover:bg-deep-hover hover:text-on-deep"
        >
          <Icon name="arrow" className="size-4 rotate-180" />
        </Link>
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
            node={allocation?.node_name}
            onRepair={allocation && canRepair(allocation, may) ? () => setRepairing(true) : undefined}
            docked={shown}
            free={screen?.isWrittenHigh() ? "bottom" : "top"}
            over={allocation !== undefined && !["requested", "active"].includes(allocation.status)}
            back={
              <Link to="/allocations/$allocationId" params={{ allocationId }} className={buttonClasses()}>
                Back
              </Link>
            }
          />
        )}
      </div>
      {screen && shell && <KeyBar screen={screen} ctrl={ctrl} onCtrl={holdCtrl} />}
      {ending && shell && (
        <EndDialog terminalId={shell} onClose={() => setEnding(false)} afterwards={() => screen?.keyboard()} />
      )}
      {repairing && allocation && terminal && (
        <RepairDialog
          allocation={allocation}
          onClose={() => setRepairing(false)}
          onRepaired={() => {
            setRepairing(false);
            terminal.connection.tryAgain();
          }}
        />
      )}
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
