// The session cookie. Its name carries the installation's id, because browsers share cookies
// between all ports of a host: two installations on localhost must not sign each other out.

import { SESSION_LIFETIME_SECONDS } from "./authenticate.ts";

export type SessionCookie = {
  read(header: string | undefined): string | undefined;
  set(secret: string): string;
  clear(): string;
};

export function sessionCookie(options: { installationId: string; secure: boolean }): SessionCookie {
  const base = `hf_${options.installationId.slice(0, 8)}_session`;
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
    set: (secret) => `${name}=${secret}; Max-Age=${SESSION_LIFETIME_SECONDS}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
