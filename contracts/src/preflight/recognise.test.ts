// What a probe finds has a reason on both ways, and pages of proxies are distinguished.

import { describe, expect, it } from "vitest";
import { reasons } from "../reasons/catalogue.ts";
import { pageKind } from "./page-kind.ts";
import { probeCodeNames, reasonOfProbe } from "./probe-codes.ts";

describe("a probe's code", () => {
  it.for(probeCodeNames)("PRE-03 %s has a reason of the catalogue for API and terminal", (code) => {
    for (const way of ["api", "terminal"] as const) expect(reasons[reasonOfProbe(code, way)]).toBeDefined();
  });

  it("PRE-04 an edge that ends TLS is a matter of the profile, on either way", () => {
    expect(reasonOfProbe("edge_ends_tls", "api")).toBe("edge_terminates_tls");
    expect(reasonOfProbe("login_page", "terminal")).toBe("terminal_env_profile_drift");
    expect(reasonOfProbe("wrong_listener", "api")).toBe("endpoint_profile_drift");
    expect(reasonOfProbe("rate_limited", "api")).toBe("edge_rate_limited");
  });

  it("PRE-02 a refused certificate has the server's own reason, if that is one", () => {
    expect(reasonOfProbe("mtls_refused", "api", "cert_expired")).toBe("cert_expired");
    expect(reasonOfProbe("mtls_refused", "api", "identity_revoked")).toBe("identity_revoked");
    for (const other of ["certificate_untrusted", "disk_full", "constructor", null])
      expect(reasonOfProbe("mtls_refused", "api", other)).toBe("auth_failed");
    expect(reasonOfProbe("mtls_refused", "terminal", "cert_expired")).toBe("terminal_node_stream_mtls_failed");
  });
});

describe("a page of a proxy", () => {
  it.for([
    [{ status: 429, text: "" }, "rate_limit"],
    [{ status: 503, text: "<h1>Too Many Requests</h1>" }, "rate_limit"],
    [{ status: 302, text: "", location: "https://auth.example.com/.pomerium/sign_in?x=1" }, "login"],
    [{ status: 302, text: "", location: "/cdn-cgi/access/login/abc" }, "login"],
    [{ status: 200, text: '<html><form><input type="password"></form></html>' }, "login"],
    [{ status: 200, text: "<!doctype html><title>Sign in</title>" }, "login"],
    [{ status: 400, text: "<center>No required SSL certificate was sent</center>" }, "certificate"],
    [{ status: 301, text: "", location: "/healthz/" }, "other"],
    [{ status: 404, text: "<h1>Not here</h1>" }, "other"],
    [{ status: 200, text: "" }, "other"],
  ] as const)("PRE-04 %o is of the kind %s", ([page, kind]) => {
    expect(pageKind(page)).toBe(kind);
  });
});
