// Which address of the gateway is dialled: the published one, and, when that does not work, the one that worked last. A
// wrong address in the server's settings must not break terminals while the gateway still runs at the old one.

import { streamFailure } from "./failures.ts";
import type { Dialler, Stream } from "./stream.ts";

type Session = Omit<Parameters<Dialler["dial"]>[0], "url">;

/** `isFixed`: configured on this host, so that no other is tried. */
export type DialGateway = (
  address: { url: string; isFixed: boolean },
  session: Session,
) => Promise<{ stream: Stream; url: string }>;

export function createDialGateway({ dial }: Pick<Dialler, "dial">): DialGateway {
  let worked: string | undefined;
  return async ({ url, isFixed }, session) => {
    try {
      const stream = await dial({ url, ...session });
      worked = url;
      return { stream, url };
    } catch (error) {
      const isOfSession = streamFailure(error, url).code === "terminal_session_unknown";
      if (isFixed || isOfSession || worked === undefined || worked === url || session.signal.aborted) throw error;
      const known = worked;
      const stream = await dial({ url: known, ...session }).catch(() => {
        throw error;
      });
      return { stream, url: known };
    }
  };
}
