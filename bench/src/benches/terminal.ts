// A shell through WebSocket client → gateway → mutual TLS → agent → holder → PTY: what a person feels of the way.
// Beside it the least there can be (a PTY in the same process), what everybody knows (ssh), and two web terminals:
// wetty with one hop and no TLS, MeshCentral with its agent.

import type { Bench, FigureSpec, Measured } from "../bench.ts";
import type { Lab } from "../lab.ts";
import { startMeshcentral } from "../peers/meshcentral.ts";
import { rawPty } from "../peers/raw-pty.ts";
import { type SshPeer, startSsh } from "../peers/ssh.ts";
import { startWetty } from "../peers/wetty.ts";
import { type Crowd, IDLE_SESSIONS, measureCrowd, memoryOfSsh, SESSIONS, STREAMING } from "../terminal/crowd.ts";
import { type Bulk, type Echo, measureBulk, measureEcho, measurePrompt } from "../terminal/measures.ts";
import { startOurTerminals } from "../terminal/ours.ts";
import { makePlainShell } from "../terminal/plain-shell.ts";
import { openAtPrompt, type TerminalSide } from "../terminal/terminal.ts";

const KEYS = 500;
const PROMPTS = 5;

const peers = {
  raw: "a PTY in the same process",
  ssh: "ssh -tt to Debian's sshd",
  wetty: "wetty",
  meshcentral: "MeshCentral with its agent",
} as const;
type Peer = keyof typeof peers;
const peerNames = Object.keys(peers) as Peer[];
const short: Record<Peer, string> = { raw: "a raw PTY", ssh: "ssh", wetty: "wetty", meshcentral: "MeshCentral" };

type Flow = Echo & Bulk;
const flow: Record<
  keyof Flow,
  Pick<FigureSpec, "name" | "unit" | "better"> & { targets: Partial<Record<Peer, number>> }
> = {
  p50: { name: "echo p50", unit: "ms", better: "lower", targets: { ssh: 2, wetty: 1, meshcentral: 1 } },
  p99: { name: "echo p99", unit: "ms", better: "lower", targets: {} },
  oneLine: { name: "bulk, one line", unit: "MB/s", better: "higher", targets: { ssh: 1, meshcentral: 1 } },
  lines: { name: "bulk, lines", unit: "MB/s", better: "higher", targets: { ssh: 1, meshcentral: 1 } },
};
const flowKeys = Object.keys(flow) as (keyof Flow)[];
const nameOf = (key: keyof Flow, peer: Peer) => `${flow[key].name}, beside ${short[peer]}`;

const others = {
  prompt: "from the wish to the prompt",
  memory: `memory of an idle session, of ${IDLE_SESSIONS}`,
  steady: `echo p99 among ${SESSIONS}, ${STREAMING} of them with 100 kB/s`,
  pouring: `echo p99 among ${SESSIONS}, ${STREAMING} of them with yes`,
};

const amongMany = {
  unit: "ms",
  better: "lower",
  peer: `ours, ${SESSIONS} of which none streams`,
  target: { of: "ours", value: 20 },
} as const;

export const terminal: Bench = {
  name: "terminal",
  summary: "a shell on a node: echo of a key, bulk output, prompt, memory, five hundred at once",
  figures: [
    ...flowKeys.flatMap((key) => peerNames.map((peer) => flowFigure(key, peer))),
    { name: others.prompt, unit: "ms", better: "lower", peer: peers.ssh, target: { of: "ours", value: 60 } },
    { name: others.memory, unit: "MB", better: "lower", peer: peers.ssh },
    { ...amongMany, name: others.steady },
    { ...amongMany, name: others.pouring },
  ],
  passes: 5,
  prepare: async (lab) => {
    const ours = await startOurTerminals(lab);
    const { present, absent } = await startPeers(lab);
    // Minutes of work: once in a run, during the warm-up.
    const crowd = once(() => measureCrowd(ours));
    const sshMemory = once(memoryOfSsh);
    return {
      absent,
      ours: async () => ourFigures(await measureFlow(ours), await measurePrompt(ours, PROMPTS), await crowd()),
      theirs: async () => {
        const { quietP99 } = await crowd();
        const measured: Measured = { [others.steady]: quietP99, [others.pouring]: quietP99 };
        for (const [peer, side] of Object.entries(present) as [Peer, TerminalSide][]) {
          const values = await measureFlow(side);
          for (const key of flowKeys) measured[nameOf(key, peer)] = values[key];
        }
        if (present.ssh) {
          measured[others.prompt] = await measurePrompt(present.ssh, PROMPTS);
          measured[others.memory] = await sshMemory(present.ssh);
        }
        return measured;
      },
    };
  },
};

function flowFigure(key: keyof Flow, peer: Peer): FigureSpec {
  const { unit, better, targets } = flow[key];
  const value = targets[peer];
  const figure: FigureSpec = { name: nameOf(key, peer), unit, better, peer: peers[peer] };
  return value === undefined ? figure : { ...figure, target: { of: "ratio", value } };
}

function ourFigures(values: Flow, prompt: number, crowd: Crowd): Measured {
  return {
    ...Object.fromEntries(
      flowKeys.flatMap((key) => peerNames.map((peer) => [nameOf(key, peer), values[key]] as const)),
    ),
    [others.prompt]: prompt,
    [others.memory]: crowd.megabytes,
    [others.steady]: crowd.steadyP99,
    [others.pouring]: crowd.pouringP99,
  };
}

function once<Given extends unknown[], T>(work: (...given: Given) => Promise<T>): typeof work {
  let done: Promise<T> | undefined;
  return (...given) => {
    done ??= work(...given);
    return done;
  };
}

type Present = Partial<Record<Peer, TerminalSide>> & { ssh?: SshPeer };

/** Those that can be had here; of the others, why not. */
async function startPeers(lab: Lab): Promise<{ present: Present; absent: Record<string, string> }> {
  const shell = makePlainShell(lab);
  const present: Present = { raw: rawPty(shell) };
  const absent: Record<string, string> = {};
  const attempt = async (peer: Peer, start: () => Promise<void>) => {
    await start().catch((error: Error) => {
      absent[peers[peer]] = error.message;
    });
  };
  await attempt("ssh", async () => {
    present.ssh = await startSsh(lab, shell);
  });
  await attempt("wetty", async () => {
    present.wetty = await startWetty(lab, shell);
  });
  await attempt("meshcentral", async () => {
    present.meshcentral = await startMeshcentral(lab, shell);
  });
  return { present, absent };
}

async function measureFlow(side: TerminalSide): Promise<Flow> {
  const terminal = await openAtPrompt(side);
  try {
    return { ...(await measureEcho(terminal, KEYS)), ...(await measureBulk(terminal)) };
  } finally {
    await terminal.close();
  }
}
