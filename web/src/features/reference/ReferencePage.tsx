// The API reference, made from the document that the api itself serves. Works without signing in.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { watchedFetch } from "../../connection.ts";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Wordmark } from "../../design/layout/Logo.tsx";
import { PageTitle } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { OperationView } from "./OperationView.tsx";
import { groupsOf, matching, type OpenApiDocument } from "./operations.ts";
import { ReferenceNavigation } from "./ReferenceNavigation.tsx";

export function ReferencePage() {
  const document = useQuery({
    queryKey: ["openapi"],
    queryFn: async ({ signal }) => {
      const response = await watchedFetch("/openapi.json", { signal });
      if (!response.ok) throw new TypeError(`/openapi.json returned ${response.status}`);
      return (await response.json()) as OpenApiDocument;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <PageTitle>API reference</PageTitle>
      <header className="on-deep sticky top-0 z-30 flex h-13 items-center justify-between bg-deep px-4 text-on-deep lg:px-6">
        <Link to="/" className="rounded-sm" aria-label="Holdfast, overview">
          <Wordmark />
        </Link>
        <Link to="/" className="rounded-sm text-on-deep-muted hover:text-on-deep">
          Dashboard
        </Link>
      </header>
      {document.data ? (
        <Reference document={document.data} />
      ) : (
        <main className="mx-auto max-w-3xl px-6 py-10">
          {document.error ? (
            <ErrorNotice error={document.error} onRetry={() => void document.refetch()} />
          ) : (
            <Loading what="the API reference" />
          )}
        </main>
      )}
    </>
  );
}

function Reference({ document }: { document: OpenApiDocument }) {
  const [filter, setFilter] = useState("");
  const groups = useMemo(() => groupsOf(document), [document]);
  const shown = useMemo(() => matching(groups, filter), [groups, filter]);
  // The browser looked for the fragment before the operations were there.
  useEffect(() => {
    if (window.location.hash) window.document.getElementById(window.location.hash.slice(1))?.scrollIntoView();
  }, []);
  return (
    <div className="mx-auto max-w-7xl lg:grid lg:grid-cols-[17rem_minmax(0,1fr)]">
      <ReferenceNavigation groups={shown} filter={filter} onFilter={setFilter} />
      <main className="min-w-0 px-4 py-8 sm:px-8 lg:py-10">
        <h1 className="text-3xl font-semibold tracking-tight">API reference</h1>
        <p className="mt-2 max-w-2xl text-ink-muted">
          Version <span className="font-mono text-sm">{document.info.version}</span>.{" "}
          <Prose text={document.info.description ?? ""} /> OpenAPI document:{" "}
          <a href="/openapi.json" className="text-kelp underline">
            /openapi.json
          </a>
          .
        </p>
        {shown.length === 0 && <p className="mt-10 text-ink-muted">No operation matches “{filter}”.</p>}
        {shown.map((group) => (
          <section key={group.name} aria-labelledby={`group-${group.name}`} className="mt-12">
            <h2 id={`group-${group.name}`} className="text-xl font-semibold tracking-tight first-letter:uppercase">
              {group.name}
            </h2>
            {group.operations.map((operation) => (
              <OperationView key={operation.id} operation={operation} />
            ))}
          </section>
        ))}
      </main>
    </div>
  );
}
