// xterm.js, set up: the only module that loads it. Draws with WebGL, or with plain elements where that
// is missing or lost.

import "@xterm/xterm/css/xterm.css";
import type { Size } from "@holdfast/contracts/terminal/frames";
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";
import { styleByScript } from "./adopted-styles.ts";
import type { Display } from "./connection.ts";
import { type BarKey, keySequence, withCtrl } from "./keys.ts";
import { type PaletteName, palettes } from "./themes.ts";
import { widths } from "./widths.ts";

export type ScreenLook = { fontSize: number; palette: PaletteName; screenReader: boolean };

export type ScreenEvents = {
  onInput(bytes: Uint8Array<ArrayBuffer>): void;
  onSize(size: Size): void;
  onTitle(title: string): void;
  onBell(): void;
  onSearch(): void;
  /** The way out for the keyboard: Tab belongs to the programs. */
  onMenu(): void;
  onCopy(text: string): void;
  onFound(found: { index: number; count: number }): void;
  /** Ctrl of the key bar was used up by what was typed. */
  onCtrlUsed(): void;
};

export type Screen = Display & {
  look(look: ScreenLook): void;
  focus(): void;
  /** What takes the keys. */
  keyboard(): HTMLElement | undefined;
  /** The cursor is in the upper half. */
  isWrittenHigh(): boolean;
  selection(): string;
  selectAll(): void;
  clear(): void;
  paste(text: string): void;
  press(key: BarKey): void;
  /** The next typed character is meant with Ctrl. */
  holdCtrl(held: boolean): void;
  find(text: string, direction: "next" | "previous"): void;
  endSearch(): void;
  dispose(): void;
};

const FONT = '"Spline Sans Mono Variable"';
const SCROLLBACK_LINES = 10_000;
const encoder = new TextEncoder();

export async function createScreen(parent: HTMLElement, first: ScreenLook, events: ScreenEvents): Promise<Screen> {
  // Cells are measured once; the font must be there by then. Without it, the system's own will do.
  await Promise.all(["400", "700"].map((weight) => document.fonts.load(`${weight} 14px ${FONT}`))).catch(
    () => undefined,
  );
  const terminal = new Terminal({
    ...optionsOf(first),
    allowProposedApi: true,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: `${FONT}, ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace`,
    linkHandler: { activate: (_, uri) => openLink(uri, { asks: true }) },
    lineHeight: 1.15,
    logLevel: "error",
    macOptionIsMeta: true,
    rescaleOverlappingGlyphs: true,
    scrollback: SCROLLBACK_LINES,
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(new WebLinksAddon((_, uri) => openLink(uri, { asks: false })));
  terminal.unicode.register(widths);
  terminal.unicode.activeVersion = widths.version;
  styleByScript();
  terminal.open(parent);

  let palette = first.palette;
  let searching = false;
  // A match that was found is selected, and the selection covers its mark.
  const themeNow = () => {
    const { theme, match } = palettes[palette];
    return searching ? { ...theme, selectionInactiveBackground: match.active } : theme;
  };
  const markFound = (now: boolean) => {
    if (searching === now) return;
    searching = now;
    terminal.options.theme = themeNow();
  };
  const applyContrast = () => {
    // Drawn with elements, inverse text would be taken for text on its own colour and made grey.
    const minimum = palettes[palette].minimumContrast;
    terminal.options.minimumContrastRatio = byWebgl || palette === "contrast" ? minimum : 1;
  };
  let byWebgl = drawWithWebgl(terminal, () => {
    byWebgl = false;
    applyContrast();
  });
  applyContrast();

  /** Bytes of old output still to be shown; until then programs' questions in it are not answered again. */
  let muted = 0;
  let ctrl = false;

  const send = (bytes: Uint8Array<ArrayBuffer>) => {
    if (muted <= 0) events.onInput(bytes);
  };
  const fitSoon = onNextFrame(() => fit.fit());
  const watching = new ResizeObserver(fitSoon);

  terminal.onData((text) => {
    if (!ctrl) return send(encoder.encode(text));
    ctrl = false;
    events.onCtrlUsed();
    send(encoder.encode(withCtrl(text)));
  });
  // Mouse reports of old programs: each character is one byte.
  terminal.onBinary((text) => send(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  terminal.onResize(({ cols, rows }) => events.onSize({ cols, rows }));
  terminal.onTitleChange(events.onTitle);
  terminal.onBell(events.onBell);
  search.onDidChangeResults(({ resultIndex, resultCount }) =>
    events.onFound({ index: resultIndex, count: resultCount }),
  );
  handleShortcuts(terminal, events);
  fit.fit();
  events.onSize({ cols: terminal.cols, rows: terminal.rows });
  watching.observe(parent);

  return {
    write(bytes, shown) {
      terminal.write(bytes, () => {
        muted -= bytes.length;
        shown();
      });
    },
    reset: () => terminal.reset(),
    // A soft reset: modes that a lost sequence would have ended end here, and what was shown stays.
    showLoss: () => terminal.write("\x1b[!p\r\n\x1b[7m Some output was lost here. \x1b[0m\r\n"),
    muteUntilShown(bytes) {
      muted = bytes;
    },
    look(look) {
      palette = look.palette;
      terminal.options = { ...optionsOf(look), theme: themeNow() };
      applyContrast();
      fitSoon();
    },
    focus: () => terminal.focus(),
    keyboard: () => terminal.textarea,
    isWrittenHigh: () => terminal.buffer.active.cursorY < terminal.rows / 2,
    selection: () => terminal.getSelection(),
    selectAll: () => terminal.selectAll(),
    clear: () => terminal.clear(),
    paste: (text) => terminal.paste(text),
    press(key) {
      const application = terminal.modes.applicationCursorKeysMode;
      terminal.input(keySequence(key, { application, ctrl }));
    },
    holdCtrl(held) {
      ctrl = held;
    },
    find(text, direction) {
      markFound(true);
      const { all, active } = palettes[palette].match;
      const decorations = {
        matchBackground: all,
        activeMatchBackground: active,
        matchOverviewRuler: all,
        activeMatchColorOverviewRuler: active,
      };
      if (direction === "next") search.findNext(text, { decorations });
      else search.findPrevious(text, { decorations });
    },
    endSearch() {
      markFound(false);
      search.clearDecorations();
    },
    dispose() {
      watching.disconnect();
      terminal.dispose();
    },
  };
}

/** Ctrl+Shift and a key are for the page; everything else is for the shell. */
function handleShortcuts(terminal: Terminal, events: Pick<ScreenEvents, "onCopy" | "onSearch" | "onMenu">): void {
  terminal.attachCustomKeyEventHandler((event) => {
    const wanted = event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey;
    if (!wanted) return true;
    switch (event.code) {
      case "KeyC":
        event.preventDefault();
        if (event.type === "keydown" && terminal.hasSelection()) events.onCopy(terminal.getSelection());
        return false;
      case "KeyF":
        event.preventDefault();
        if (event.type === "keydown") events.onSearch();
        return false;
      case "KeyM":
        event.preventDefault();
        if (event.type === "keydown") events.onMenu();
        return false;
      // The browser pastes by itself, and needs no permission for it.
      case "KeyV":
        return false;
      default:
        return true;
    }
  });
}

function optionsOf({ fontSize, palette, screenReader }: ScreenLook) {
  return { fontSize, theme: palettes[palette].theme, screenReaderMode: screenReader };
}

/** Many times faster than elements, unless the processor has to play the graphics card. */
function drawWithWebgl(terminal: Terminal, onLost: () => void): boolean {
  const probe = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!probe) return false;
  probe.getExtension("WEBGL_lose_context")?.loseContext();
  const webgl = new WebglAddon();
  webgl.onContextLoss(() => {
    webgl.dispose();
    onLost();
  });
  try {
    terminal.loadAddon(webgl);
    return true;
  } catch {
    webgl.dispose();
    return false;
  }
}

/** A program can hide any address behind any text (OSC 8): then the person sees it before it is opened. */
function openLink(uri: string, { asks }: { asks: boolean }): void {
  if (!/^https?:\/\//i.test(uri)) return;
  if (asks && !window.confirm(`Open ${uri}?`)) return;
  window.open(uri, "_blank", "noopener,noreferrer");
}

/** However often it is requested, it runs once, before the next frame. */
function onNextFrame(work: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}
