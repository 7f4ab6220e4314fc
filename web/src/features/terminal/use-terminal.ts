// A terminal for as long as its page stands: the connection, the screen on it, and what both have to say.

import {
  createConsoleToken,
  createTerminalToken,
  reportTerminalFailure,
} from "@holdfast/contracts/endpoints/terminals";
import { type Failure, reportOf } from "@holdfast/terminal-client/failures";
import type { Grant } from "@holdfast/terminal-client/states";
import { useMutation } from "@tanstack/react-query";
import { type RefObject, useEffect, useEffectEvent, useState } from "react";
import { untilReached } from "../../connection.ts";
import { toast } from "../../design/feedback/Toast.tsx";
import { writeClipboard } from "../../design/values/Copy.tsx";
import { useActing } from "../../session.ts";
import { type Connection, openConnection } from "./connection.ts";
import { reloadOnce } from "./reload-once.ts";
import type { Screen, ScreenEvents, ScreenLook } from "./screen.ts";
import { inputIsFull } from "./words.ts";

export type TerminalAt = { allocationId: string } | { leaseId: string };

type TerminalOptions = {
  at: TerminalAt;
  shell: string | undefined;
  place: RefObject<HTMLElement | null>;
  look: ScreenLook;
  on: Pick<ScreenEvents, "onTitle" | "onBell" | "onSearch" | "onMenu" | "onFound" | "onCtrlUsed">;
};

export type OpenedTerminal = { connection: Connection; screen: Screen | undefined };

export function useTerminal({ at, shell, place, look, on }: TerminalOptions): OpenedTerminal | undefined {
  const [opened, setOpened] = useState<OpenedTerminal>();
  const requestToken = useRequestToken(at);
  const report = useReport();

  const open = useEffectEvent((parent: HTMLElement) => {
    const making = loadScreen().then(({ createScreen }) =>
      createScreen(parent, look, {
        ...on,
        onInput: (bytes) => {
          if (!connection.write(bytes)) toast(inputIsFull);
        },
        onSize: (size) => connection.resize(size),
        onCopy: (text) => void writeClipboard(text),
      }),
    );
    const connection = openConnection({
      shell,
      display: making,
      requestToken,
      report,
      onPolicyRefused: reloadOnce,
    });
    return { connection, making };
  });

  useEffect(() => {
    if (!place.current) return;
    const { connection, making } = open(place.current);
    let left = false;
    setOpened({ connection, screen: undefined });
    // If it fails, the connection says so.
    const shown = making.then(
      (screen) => {
        if (!left) setOpened({ connection, screen });
        return screen;
      },
      () => undefined,
    );
    return () => {
      left = true;
      connection.leave();
      void shown.then((screen) => screen?.dispose());
    };
  }, [place]);

  const { fontSize, palette, screenReader } = look;
  useEffect(
    () => opened?.screen?.look({ fontSize, palette, screenReader }),
    [opened, fontSize, palette, screenReader],
  );
  return opened;
}

/** Code that could not be loaded because the server was unreachable is loaded again when it is back. */
async function loadScreen() {
  const load = () => import("./screen.ts");
  try {
    return await load();
  } catch {
    await untilReached();
    return load().catch((error: unknown) => {
      reloadOnce();
      throw error;
    });
  }
}

/** As a mutation, so that a session that has ended leads to sign-in as everywhere. */
function useRequestToken(at: TerminalAt) {
  const { call } = useActing();
  type Wanted = { shell: string | undefined; offset: number | undefined; signal: AbortSignal };
  const { mutateAsync } = useMutation({
    mutationFn: async ({ shell, offset, signal }: Wanted): Promise<Grant> => {
      const body = shell === undefined ? {} : { session_id: shell, offset };
      const { token, url, session_id, correlation_id, deadline_seconds } = await ("leaseId" in at
        ? call(createConsoleToken, { params: { lease_id: at.leaseId }, body, signal })
        : call(createTerminalToken, { params: { allocation_id: at.allocationId }, body, signal }));
      return {
        token,
        url,
        sessionId: session_id,
        correlationId: correlation_id,
        deadlineSeconds: deadline_seconds,
      };
    },
    // The token is of use to nobody but the one connection.
    gcTime: 0,
  });
  return mutateAsync;
}

function useReport() {
  const { call } = useActing();
  return (sessionId: string, failure: Failure) => {
    const { correlationId } = failure;
    const body = reportOf(failure);
    if (!body) return;
    // The person sees the failure whether or not the report arrives.
    const quoted = correlationId === undefined ? {} : { correlationId };
    call(reportTerminalFailure, { params: { terminal_id: sessionId }, body, ...quoted }).catch(() => undefined);
  };
}
