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
    const [api, gateway] = [
      { bind: "127.0.0.1", port: 3001 },
      { bind: "0.0.0.0", port: 3002 },
    ];
    expect(sshLine([api, gateway], env)).toBe("ssh -L 3001:127.0.0.1:3001 -L 3002:127.0.0.1:3002 ada@10.0.0.7");
    expect(sshLine([api], { ...env, SSH_CONNECTION: "a 1 b 2222" })).toBe(
      "ssh -L 3001:127.0.0.1:3001 -p 2222 ada@b",
    );
  });

  it.for([
    ["127.0.0.5", "-L 3001:127.0.0.5:3001"],
    ["::", "-L 3001:127.0.0.1:3001"],
    ["localhost", "-L 3001:localhost:3001"],
    // Quoted, because zsh takes the brackets for a pattern.
    ["::1", "-L '3001:[::1]:3001'"],
  ] as const)("OPS-01 lead by ssh to where it listens: %s", ([bind, forward]) => {
    expect(sshLine([{ bind, port: 3001 }], { SUDO_USER: "ada", SSH_CONNECTION: "a 1 b 22" })).toBe(
      `ssh ${forward} ada@b`,
    );
  });

  it("OPS-01 leave the user to fill in when the system does not know who we are", () => {
    const unknown = () => {
      throw new Error("uv_os_get_passwd returned ENOENT");
    };
    const line = sshLine([{ bind: "127.0.0.1", port: 3001 }], { SSH_CONNECTION: "a 1 b 22" }, unknown);
    expect(line).toBe("ssh -L 3001:127.0.0.1:3001 YOU@b");
  });
});
