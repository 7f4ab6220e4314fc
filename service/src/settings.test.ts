import { UsageError } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { bindAddress, checkExposure, type Exposure, isLoopback } from "./settings.ts";

type Refusal = "half of TLS" | "clear text" | "no public URL";

const phrases: Record<Refusal, string[]> = {
  "half of TLS": ["HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE together"],
  "clear text": ["HOLDFAST_THE_BIND is", "clear text", "HOLDFAST_TLS_CERT_FILE", "HOLDFAST_TRUSTED_PROXIES"],
  "no public URL": ["HOLDFAST_THE_BIND is", "HOLDFAST_PUBLIC_URL"],
};

/** What should come of a combination, decided apart from the code. */
function expected(exposure: Exposure): Refusal | undefined {
  const tls = [exposure.tlsCertFile, exposure.tlsKeyFile].filter(Boolean).length;
  if (tls === 1) return "half of TLS";
  if (exposure.bind === "127.0.0.1" || exposure.bind === "::1" || exposure.bind === "localhost") return undefined;
  if (tls === 0 && !exposure.trustedProxies) return "clear text";
  return exposure.publicUrl ? undefined : "no public URL";
}

const combinations: Exposure[] = ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.168.1.5"].flatMap(
  (bind) =>
    [undefined, "/cert.pem"].flatMap((tlsCertFile) =>
      [undefined, "/key.pem"].flatMap((tlsKeyFile) =>
        [undefined, ["10.0.0.1"]].flatMap((trustedProxies) =>
          [undefined, "https://holdfast.example.com"].map((publicUrl) => ({
            bind,
            tlsCertFile,
            tlsKeyFile,
            trustedProxies,
            publicUrl,
          })),
        ),
      ),
    ),
);

function refusalOf(exposure: Exposure): string | undefined {
  try {
    checkExposure(exposure, "HOLDFAST_THE_BIND");
    return undefined;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

describe("checkExposure", () => {
  it("SEC-03 opens a listener to others only over TLS or a declared proxy, and with its public address", () => {
    expect(combinations).toHaveLength(96);
    for (const exposure of combinations) {
      const message = refusalOf(exposure);
      const refusal = expected(exposure);
      if (refusal === undefined) expect(message, JSON.stringify(exposure)).toBeUndefined();
      else for (const phrase of phrases[refusal]) expect(message, JSON.stringify(exposure)).toContain(phrase);
    }
  });
});

describe("addresses", () => {
  it.for([
    ["127.0.0.1", true],
    ["127.8.9.1", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["::", false],
    ["10.127.0.1", false],
    ["::ffff:10.0.0.1", false],
    ["128.0.0.1", false],
  ] as const)("SEC-03 %s is this machine alone: %s", ([address, loopback]) => {
    expect(isLoopback(address)).toBe(loopback);
  });

  it("SEC-03 binds to addresses, never to names that a resolver decides about", () => {
    for (const address of ["127.0.0.1", "::", "0.0.0.0", "localhost"]) {
      expect(bindAddress.parse(address)).toBe(address);
    }
    for (const other of ["example.com", "127.0.0.1:80", "*", "[::1]", "127.0.0"]) {
      expect(bindAddress.parse(other)).toBeUndefined();
    }
  });
});
