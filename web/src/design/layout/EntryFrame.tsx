// The frame of pages outside the shell: sign-in, one-time links, not found.

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Wordmark } from "./Logo.tsx";
import { PageTitle } from "./PageHeader.tsx";
import { SeabedArt } from "./SeabedArt.tsx";

type EntryFrameProps = { title: string; intro?: ReactNode; children: ReactNode };

export function EntryFrame({ title, intro, children }: EntryFrameProps) {
  return (
    <div className="flex min-h-dvh flex-col lg:flex-row">
      <PageTitle>{title}</PageTitle>
      <aside className="on-deep relative flex shrink-0 overflow-hidden bg-deep text-on-deep lg:w-[42%] lg:max-w-2xl">
        <SeabedArt className="absolute inset-0 size-full opacity-60 lg:opacity-100" />
        <div className="relative flex w-full flex-col px-6 py-5 lg:px-12 lg:py-10">
          <Link to="/" className="self-start rounded-sm">
            <Wordmark />
          </Link>
          <p className="mt-auto hidden max-w-sm text-xl leading-snug font-medium text-balance lg:block">
            Runs fleets of machines that you cannot always reach.
          </p>
        </div>
      </aside>
      <main className="flex flex-1 justify-center px-6 py-10 lg:items-center lg:py-16">
        <div className="w-full max-w-sm">
          <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
          {intro && <div className="mt-2 text-ink-muted">{intro}</div>}
          <div className="mt-7">{children}</div>
        </div>
      </main>
    </div>
  );
}
