// One operation: what it does, who may call it, what goes in and comes out, how it fails.

import type { ReactNode } from "react";
import { Code, Prose } from "../../design/layout/Prose.tsx";
import { Cell, Table } from "../../design/lists/Table.tsx";
import { CopyIconButton } from "../../design/values/Copy.tsx";
import { curlOf } from "./curl.ts";
import { MethodTag } from "./MethodTag.tsx";
import type { Operation } from "./operations.ts";
import type { FieldRow } from "./schema-rows.ts";

const accessWords: Record<string, string> = {
  public: "Anyone, without signing in.",
  "signed-in": "Anyone signed in, and any token.",
  operator: "The platform operator.",
};

export function OperationView({ operation }: { operation: Operation }) {
  return (
    // There are a hundred, and laying them all out takes a second: the browser does it for those that come into view.
    <article
      id={operation.id}
      className="-mx-2 scroll-mt-18 px-2 pt-5 [contain-intrinsic-height:auto_60rem] [content-visibility:auto] [&+article]:mt-10 [&+article]:border-t [&+article]:pt-8"
      aria-label={operation.summary}
    >
      <h3 className="text-lg font-semibold">
        <a href={`#${operation.id}`} className="rounded-sm hover:underline">
          {operation.summary}
        </a>
      </h3>
      <p className="mt-1.5 flex items-center gap-2">
        <MethodTag method={operation.method} />
        <span className="min-w-0 font-mono text-sm [overflow-wrap:anywhere]">{operation.path}</span>
      </p>
      {operation.description && (
        <p className="mt-3 max-w-2xl">
          <Prose text={operation.description} />
        </p>
      )}
      <p className="mt-3 text-ink-muted">
        Access: <Access access={operation.access} />
      </p>
      <CurlExample operation={operation} />
      {operation.parameters.length > 0 && (
        <Part title="Parameters">
          <FieldTable label={`Parameters of ${operation.id}`} rows={operation.parameters} />
        </Part>
      )}
      {operation.body.length > 0 && (
        <Part title="Body">
          <FieldTable label={`Body of ${operation.id}`} rows={operation.body} />
        </Part>
      )}
      <Part title={`Answer ${operation.answer.status}`}>
        {operation.answer.rows.length > 0 ? (
          <FieldTable label={`Answer of ${operation.id}`} rows={operation.answer.rows} answer />
        ) : (
          <p className="text-ink-muted">No response body.</p>
        )}
      </Part>
      <Part title="Errors">
        <Table label={`Errors of ${operation.id}`} columns={["Status", "Code", "Meaning"]}>
          {operation.errors.map((error) => (
            <tr key={error.code}>
              <Cell className="w-16 text-ink-muted">{error.status}</Cell>
              <Cell className="font-mono text-sm">{error.code}</Cell>
              <Cell className="text-ink-muted">
                <Prose text={error.message} />
              </Cell>
            </tr>
          ))}
        </Table>
      </Part>
    </article>
  );
}

function CurlExample({ operation }: { operation: Operation }) {
  const curl = curlOf(operation, window.location.origin);
  return (
    <div className="on-deep mt-4 overflow-hidden rounded-lg bg-deep text-on-deep">
      <div className="flex items-center justify-between border-b border-deep-line py-1 pr-2 pl-4 text-xs text-on-deep-muted [&_button:hover]:bg-deep-hover [&_button:hover]:text-on-deep [&_button]:my-0 [&_button]:text-on-deep-muted">
        Example
        <CopyIconButton text={curl} label={`Copy curl example of ${operation.id}`} />
      </div>
      <pre className="px-4 py-3 whitespace-pre-wrap [overflow-wrap:anywhere] font-mono text-sm">{curl}</pre>
    </div>
  );
}

function Access({ access }: { access: string }) {
  const words = accessWords[access];
  if (words) return words;
  return (
    <>
      a member or token with the scope <Code>{access}</Code>, or the operator.
    </>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <h4 className="mt-5 mb-2 text-sm font-semibold">{title}</h4>
      {children}
    </>
  );
}

type FieldTableProps = { label: string; rows: (FieldRow & { where?: string })[]; answer?: boolean };

function FieldTable({ label, rows, answer }: FieldTableProps) {
  return (
    <Table label={label} columns={["Name", "Type", "Meaning"]}>
      {rows.map((row) => (
        <tr key={`${row.where}${row.name}`}>
          <Cell className="align-top font-mono text-sm whitespace-nowrap">
            {row.name}
            {row.where && <span className="block font-sans text-xs text-ink-muted">in {row.where}</span>}
          </Cell>
          <Cell className="min-w-36 align-top font-mono text-sm text-ink-muted">
            {row.type}
            {!answer && (
              <span className="block font-sans text-xs">
                {row.required ? <strong>required</strong> : "optional"}
              </span>
            )}
          </Cell>
          <Cell className="min-w-56 align-top">
            <Prose text={row.description} />
            {row.limits && <span className="block text-sm text-ink-muted">{row.limits}</span>}
          </Cell>
        </tr>
      ))}
    </Table>
  );
}
