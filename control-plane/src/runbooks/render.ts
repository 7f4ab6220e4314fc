// A runbook as a page that needs nothing else: no script, no font, no image. It must be readable while the rest is broken.

import { createHash } from "node:crypto";
import { RUNBOOKS_PATH } from "@holdfast/contracts/reasons/catalogue";
import { pageHeaders } from "@holdfast/service/http";
import { Marked } from "marked";

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 1.75rem 0 0.25rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.92em; }
pre { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 4px; overflow-x: auto; padding: 0.6rem 0.8rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: 0.25rem 0.6rem; text-align: left; vertical-align: top; }
li { margin: 0.2rem 0; }
`;

const styleHash = createHash("sha256").update(style).digest("base64");

export const htmlHeaders: Readonly<Record<string, string>> = {
  ...pageHeaders(),
  "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
};

const marked = new Marked({
  renderer: {
    // Our own files have only comments of it. Whatever else looks like HTML is text, such as a forgotten <node>.
    html: ({ text }) => (/^\s*<!--/.test(text) ? "" : escaped(text)),
    image: ({ text }) => escaped(text),
    heading({ tokens, depth, text }) {
      const id = depth === 1 ? "" : ` id="${anchorOf(text)}"`;
      return `<h${depth}${id}>${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      const target = targetOf(href);
      return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`;
    },
  },
});

/** As repositories show Markdown: "Stream or polling" is #stream-or-polling. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(/\s/g, "-");
}

/** Another runbook, or a page of somebody else's; a file of the repository is not served. */
function targetOf(href: string): string | undefined {
  const [, page, section = ""] = /^([\w-]+)\.md(#[\w-]+)?$/.exec(href) ?? [];
  if (page !== undefined) return `${RUNBOOKS_PATH}/${page}${section}`;
  return href.startsWith("https://") ? href : undefined;
}

export function renderRunbook(markdown: string): string {
  const [, title = "Runbook"] = /^# (.+)$/m.exec(markdown) ?? [];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Holdfast runbook</title>
<style>${style}</style>
</head>
<body>
<nav><a href="${RUNBOOKS_PATH}">All runbooks</a></nav>
<main>
${marked.parse(markdown, { async: false })}</main>
</body>
</html>
`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (one) => entities[one] ?? one);
}
