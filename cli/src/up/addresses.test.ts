import { describe, expect, it } from "vitest";
import { looksRemote, sshLine, urlOf } from "./addresses.ts";

describe("addresses", () => {
  it("OPS-01 are ones that this machine can open", () => {
    expect(urlOf({ bind: "127.0.0.1", port: 3001, tls: false })).toBe("http://127.0.0.1:3001");
    expect(urlOf({ bind: "0.0.0.0", port: 3001, tls: true })).toBe("https://127.0.0.1:3001");
    expect(urlOf({ bind: "::1", port: 3001, tls: false })).toBe("http://[::1]:3001");
  });

  it.for([
    { env: { SSH_CONNECTION: "10.0.0.9 50000 10.0.0.7 22", DISPLAY: ":10" }, remote: true },
    { env: {}, remote: true },
    { env: { DISPLAY: ":0" }, remote: false },
    { env: { WAYLAND_DISPLAY: "wayland-0" }, remote: false },
    { env: { WSL_DISTRO_NAME: "Debian" }, remote: false },
  ])("OPS-01 tell a machine without a browser: $env", ({ env, remote }) => {
    expect(looksRemote(env)).toBe(remote);
  });

  it("OPS-01 come with the ssh line that leads to them", () => {
    const env = { SSH_CONNECTION: "10.0.0.9 50000 10.0.0.7 22", SUDO_USER: "ada" };
    expect(sshLine([3001, 3002], env)).toBe("ssh -L 3001:127.0.0.1:3001 -L 3002:127.0.0.1:3002 ada@10.0.0.7");
    expect(sshLine([3001], { ...env, SSH_CONNECTION: "a 1 b 2222" })).toBe(
      "ssh -L 3001:127.0.0.1:3001 -p 2222 ada@b",
    );
  });
});
