// The networks of guests, on an invented host with real QEMU: what a guest reaches, what it must not reach, and what is left.

import { readFileSync, readlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { lacks, lacksVms } from "../../../scripts/facilities.mjs";
import { launchParams, type VmPlace, vmPlace } from "../support/vm-host.ts";
import { METADATA, OUTSIDE, openVmNetwork, PORT, type VmNetworkHost, written } from "../support/vm-network.ts";
import { networkNamespaces, tracesOf } from "../support/vm-traces.ts";

const A_WHILE = 600_000;

/** Writes for each try what it reached. Not by wget: busybox's crashes in the guest. */
const functions = `
try() {
  text=$(printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 "$2" ${PORT} 2>/dev/null | tail -n 1)
  if [ "$text" ]; then echo "$1: reached $text"; else echo "$1: not reached"; fi
}
`;
const connected = "ip link set lo up; ip link set eth0 up; udhcpc -q -n -i eth0 -s /dhcp\n";

/** Sends what is for 127.0.0.1 through the network card, as a guest may who wants to get at its host. */
const loopbackOutwards = `
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
ip addr del 127.0.0.1/8 dev lo
ip route add 127.0.0.1/32 via 10.0.2.2 dev eth0
`;

const processesOf = (place: VmPlace, program: string) =>
  tracesOf(place).flatMap((line) => new RegExp(`^process (\\d+) ${program} `).exec(line)?.[1] ?? []);

const linksOf = async ({ host }: VmNetworkHost) =>
  (JSON.parse(await host.run("ip", "-json", "link", "show")) as { ifname: string }[]).map(({ ifname }) => ifname);

describe.skipIf(lacksVms() || lacks("dnsmasq"))("a guest on the user network", () => {
  it(
    "VM-03 reaches other machines and names, and neither the host's loopback, its cloud's metadata nor another guest",
    async () => {
      const network = await openVmNetwork();
      const place = vmPlace();
      const agent = await network.agent(place);
      const before = tracesOf(place);
      const neighbour = launchParams(place, {
        user_data: `${functions}${connected}while :; do nc -l -p ${PORT} -e echo neighbour; done &
until try itself 10.0.2.15 | grep reached.neighbour; do sleep 1; done\n`,
      });
      const other = await agent.launch(neighbour);
      await written(other.serial_log, "itself: reached neighbour");
      const wanted = launchParams(place, {
        user_data: `${functions}${connected}
try outside ${OUTSIDE}
nslookup outside.test | grep -A1 Name: | tail -n 1 | sed 's/.*: */name: /'
try alias 10.0.2.2; try resolver 10.0.2.3
try gateway 198.18.0.2; try dns 198.18.0.3; try namespace 198.18.0.100
try metadata ${METADATA}
${loopbackOutwards}
try loopback 127.0.0.1
ip addr flush dev eth0; ip addr add 10.0.2.77/24 dev eth0
try neighbour 10.0.2.15
echo all tried\n`,
      });
      const { pid, serial_log } = await agent.launch(wanted);
      const text = await written(serial_log, "all tried");
      const tries = [...text.matchAll(/^(\w+): (reached [\w ]+|not reached|[0-9.]+)$/gm)];
      expect(Object.fromEntries(tries.map(([, name, result]) => [name, result]))).toEqual({
        outside: "reached outside",
        name: OUTSIDE,
        ...{ alias: "not reached", resolver: "not reached", gateway: "not reached", dns: "not reached" },
        ...{ namespace: "not reached", metadata: "not reached", loopback: "not reached" },
        neighbour: "not reached",
      });

      // The way out has no more rights than it needs, and goes with the VM.
      const [uplink = ""] = processesOf(place, "slirp4netns").filter((one) =>
        argumentsOf(one).includes(wanted.vm_id),
      );
      const status = readFileSync(`/proc/${uplink}/status`, "utf8");
      expect(status).toMatch(/^CapEff:\t0000000000000400$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      const namespace = readlinkSync(`/proc/${pid}/ns/net`);
      await agent.terminate(wanted.vm_id);
      expect(networkNamespaces()).not.toContain(namespace);
      expect(processesOf(place, "slirp4netns")).toHaveLength(1);
      await agent.terminate(neighbour.vm_id);
      expect(tracesOf(place)).toEqual(before);
    },
    A_WHILE,
  );

  it(
    "VM-03 VM-05 keeps its way out when the agent is killed, gets it again when that ends, and none where the owner wants none",
    async () => {
      const network = await openVmNetwork();
      const place = vmPlace();
      const first = await network.agent(place);
      const before = tracesOf(place);
      const wanted = launchParams(place, {
        user_data: `${functions}${connected}
while :; do try outside ${OUTSIDE}; sleep 1; done\n`,
      });
      const { serial_log } = await first.launch(wanted);
      await written(serial_log, "outside: reached outside");
      const uplinks = processesOf(place, "slirp4netns");
      await first.kill();
      const second = await network.agent(place);
      expect(processesOf(place, "slirp4netns")).toEqual(uplinks);
      await second.kill();
      process.kill(Number(uplinks[0]), "SIGKILL");
      await written(serial_log, "outside: not reached");
      const third = await network.agent(place);
      expect(processesOf(place, "slirp4netns")).toHaveLength(1);
      const text = readFileSync(serial_log, "utf8");
      await expect
        .poll(() => readFileSync(serial_log, "utf8").slice(text.length), { timeout: 60_000 })
        .toContain("outside: reached outside");
      await third.terminate(wanted.vm_id);
      expect(tracesOf(place)).toEqual(before);
      await third.kill();

      const setup = { ...place.setup, network: { ...place.setup.network, uplink: false } };
      const isolated = await network.agent({ ...place, setup });
      const alone = launchParams(place, {
        user_data: `${functions}${connected}try outside ${OUTSIDE}; echo all tried\n`,
      });
      const vm = await isolated.launch(alone);
      expect(await written(vm.serial_log, "all tried")).toContain("outside: not reached");
      expect(processesOf(place, "slirp4netns")).toEqual([]);
      await isolated.terminate(alone.vm_id);
      expect(tracesOf(place)).toEqual(before);
    },
    A_WHILE,
  );
});

describe.skipIf(lacksVms() || lacks("dnsmasq"))("a guest on a network of its host", () => {
  it(
    "VM-03 VM-05 becomes a member of the bridge; its tap goes with it, and a foreign tap stays",
    async () => {
      const network = await openVmNetwork();
      await network.host.ip("link add br0 type bridge", "addr add 10.88.0.1/24 dev br0", "link set br0 up");
      await network.serve(network.host, "10.88.0.1", "bridge");
      const foreign = ["hf0123456789ab", "foreign"];
      for (const name of foreign) await network.host.run("ip", "tuntap", "add", name, "mode", "tap");
      const foreignTag = "alias holdfast-000000000000-01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
      await network.host.ip(`link set hf0123456789ab ${foreignTag}`);
      const links = await linksOf(network);
      const place = vmPlace({ network: { backend: "bridge", interface: "br0", uplink: true } });
      const agent = await network.agent(place);
      const wanted = launchParams(place, {
        user_data: `${functions}ip addr add 10.88.0.5/24 dev eth0; ip link set eth0 up
try bridge 10.88.0.1; echo all tried\n`,
      });
      const { serial_log } = await agent.launch(wanted);
      expect(await written(serial_log, "all tried")).toContain("bridge: reached bridge");
      expect((await linksOf(network)).length).toBe(links.length + 1);
      expect((await agent.inventory()).strays).toEqual([]);
      await agent.terminate(wanted.vm_id);
      expect(await linksOf(network)).toEqual(links);

      // A tap without a VM, as a crash may leave one whose record was lost.
      const stray = JSON.parse(readFileSync(`${place.stateDir}/vm-host.json`, "utf8")) as { tag: string };
      await network.host.run("ip", "tuntap", "add", "hfstray", "mode", "tap");
      await network.host.ip(`link set hfstray alias holdfast-${stray.tag}-${wanted.vm_id}`);
      expect((await agent.inventory()).strays).toMatchObject([
        { kind: "tap", name: "hfstray", action: "removed" },
      ]);
      expect(await linksOf(network)).toEqual(links);
    },
    A_WHILE,
  );

  it(
    "VM-03 uses the tap of its owner, which stays",
    async () => {
      const network = await openVmNetwork();
      await network.host.run("ip", "tuntap", "add", "tap7", "mode", "tap");
      await network.host.ip("addr add 10.89.0.1/24 dev tap7", "link set tap7 up");
      await network.serve(network.host, "10.89.0.1", "tap");
      const links = await linksOf(network);
      const place = vmPlace({ network: { backend: "tap", interface: "tap7", uplink: true } });
      const agent = await network.agent(place);
      const wanted = launchParams(place, {
        user_data: `${functions}ip addr add 10.89.0.5/24 dev eth0; ip link set eth0 up
try tap 10.89.0.1; echo all tried\n`,
      });
      const { serial_log } = await agent.launch(wanted);
      expect(await written(serial_log, "all tried")).toContain("tap: reached tap");
      await agent.terminate(wanted.vm_id);
      expect(await linksOf(network)).toEqual(links);
    },
    A_WHILE,
  );
});

function argumentsOf(pid: string): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}
