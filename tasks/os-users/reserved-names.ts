// Names that a tenant may not choose. A user's group has the user's name, and these groups give power
// over the host by their name alone: to sudo and polkit, or to a service that is installed later and
// takes the group it finds. Names that exist on the host already are refused in any case.

const groupsWithPower: ReadonlySet<string> = new Set([
  ...["root", "sudo", "wheel", "admin", "adm", "operator"],
  ...["docker", "podman", "containerd", "lxd", "incus", "incus-admin", "libvirt", "libvirt-qemu", "kvm"],
  ...["disk", "kmem", "shadow", "utmp", "tty", "input", "crontab", "ssh", "sshd", "systemd-journal"],
  "holdfast",
]);

export function isReserved(name: string): boolean {
  return groupsWithPower.has(name) || name.startsWith("systemd-");
}
