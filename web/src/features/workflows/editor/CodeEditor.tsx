// A text editor for YAML, with the problems marked where they are. It lives in a shadow root: there, its styles are adopted sheets, which
// the content security policy allows; in the document they would be style elements, which it does not.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

export type TextProblem = { message: string; line: number; column: number };

type CodeEditorProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  problems: readonly TextProblem[];
  readOnly: boolean;
  /** Where the cursor goes; another object goes there again. */
  goTo: { line: number; column: number } | null;
};

export function CodeEditor({ label, value, onChange, problems, readOnly, goTo }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const initial = useRef({ value, label });

  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const made = new EditorView({
      parent: root,
      root,
      doc: initial.current.value,
      extensions: [
        ...[lineNumbers(), history(), drawSelection(), highlightActiveLine(), yaml(), lintGutter(), look],
        ...[syntaxHighlighting(colours), editable.of([]), EditorView.lineWrapping],
        keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ "aria-label": initial.current.label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed.current(update.state.doc.toString());
        }),
      ],
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, []);

  useEffect(() => {
    const changes = view.current && changesTo(view.current.state.doc.toString(), value);
    if (changes) view.current?.dispatch({ changes });
  }, [value]);

  useEffect(() => {
    const extension = readOnly ? [EditorState.readOnly.of(true), EditorView.editable.of(false), focusable] : [];
    view.current?.dispatch({ effects: editable.reconfigure(extension) });
  }, [readOnly]);

  useEffect(() => {
    const { current } = view;
    if (!current) return;
    const diagnostics = problems.map(({ message, ...place }) => {
      const from = offsetOf(current.state.doc, place);
      const to = Math.max(from, endOfWord(current.state.doc, from));
      return { ...{ from, to, message }, severity: "error" as const };
    });
    current.dispatch(setDiagnostics(current.state, diagnostics));
  }, [problems]);

  useEffect(() => {
    const { current } = view;
    if (!current || !goTo) return;
    const anchor = offsetOf(current.state.doc, goTo);
    current.dispatch({ selection: { anchor }, scrollIntoView: true });
    current.focus();
  }, [goTo]);

  return <div ref={host} className="h-full" />;
}

const editable = new Compartment();
const focusable = EditorView.contentAttributes.of({ tabindex: "0" });

/** The shortest replacement, so that the cursor and the history stay what they were. */
function changesTo(before: string, after: string): { from: number; to: number; insert: string } | undefined {
  if (before === after) return undefined;
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}

function offsetOf(text: Text, { line, column }: { line: number; column: number }): number {
  const { from, to } = text.line(Math.min(Math.max(1, line), text.lines));
  return Math.min(from + column - 1, to);
}

function endOfWord(text: Text, from: number): number {
  const { to } = text.lineAt(from);
  const word = /^[^\s,\]}:#]+/.exec(text.sliceString(from, to));
  return from + (word?.[0].length ?? 0);
}

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "2px solid var(--kelp)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.4rem", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--kelp-soft)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)",
    color: "var(--ink)",
    border: "1px solid var(--line-strong)",
    borderRadius: "5px",
    fontFamily: "var(--font-sans)",
  },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--failed)" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--hover)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--kelp)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--ink-muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--degraded)" },
]);
