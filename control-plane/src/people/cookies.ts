// The cookies of the page. Their names carry the installation's id, because browsers share cookies between all ports of
// a host: two installations on localhost must not sign each other out.

import { KNOWN_DAYS } from "./attempts.ts";
import { SESSION_LIFETIME_SECONDS } from "./sessions.ts";

export type Cookie = {
  read(header: string | undefined): string | undefined;
  set(secret: string): string;
  clear(): string;
};

/** The session, and the device that has signed in before. */
export type Cookies = { session: Cookie; device: Cookie };

type Options = { installationId: string; secure: boolean };

export function openCookies(options: Options): Cookies {
  return {
    session: cookie(options, { purpose: "session", seconds: SESSION_LIFETIME_SECONDS }),
    device: cookie(options, { purpose: "device", seconds: KNOWN_DAYS * 24 * 3600 }),
  };
}

function cookie(options: Options, { purpose, seconds }: { purpose: string; seconds: number }): Cookie {
  const base = `hf_${options.installationId.slice(0, 8)}_${purpose}`;
  const name = options.secure ? `__Host-${base}` : base;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${options.secure ? "; Secure" : ""}`;
  return {
    read(header) {
      for (const part of header?.split(";") ?? []) {
        const [key, value] = part.trim().split("=", 2);
        if (key === name && value) return value;
      }
      return undefined;
    },
    set: (secret) => `${name}=${secret}; Max-Age=${seconds}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
