import { describe, expect, it } from "vitest";
import { isReachable, localFileSystems } from "./file-systems.ts";

const mount = (device: string, root: string, path: string, type: string, options = "rw") =>
  `40 27 ${device} ${root} ${path} ${options},relatime shared:1 - ${type} source ${options}`;

describe("the file systems that may hold a user's files", () => {
  it("BM-02 are the local ones that can be written, each once", () => {
    const text = [
      mount("254:0", "/", "/", "ext4"),
      mount("254:0", "/usr", "/usr", "ext4", "ro"),
      mount("254:0", "/srv/data", "/mnt/data", "ext4"),
      mount("0:21", "/", "/proc", "proc"),
      mount("0:23", "/", "/dev/shm", "tmpfs"),
      mount("0:27", "/", "/dev/shm", "tmpfs"),
      mount("0:30", "/", "/net", "nfs4"),
      mount("0:31", "/", "/run/user/70001", "tmpfs"),
      mount("0:40", "/", "/a\\040place", "xfs"),
      mount("0:41", "/", "/cd", "ext4", "ro"),
    ].join("\n");
    expect(localFileSystems(text)).toEqual(["/", "/dev/shm", "/a place"]);
  });

  it("BM-02 are searched where only a part of them is mounted", () => {
    const text = [mount("254:1", "/inner", "/one", "ext4"), mount("254:1", "/inner/deep", "/two", "ext4")].join(
      "\n",
    );
    expect(localFileSystems(text)).toEqual(["/one"]);
  });

  it("BM-02 leave out what a user cannot come to", () => {
    expect(isReachable("/tmp")).toBe(true);
    expect(isReachable("/root/anything")).toBe(false);
    expect(isReachable("/nowhere/at/all")).toBe(false);
  });
});
