// A lab that drills of several files share, one after the other.

/** With an edge in front of the API, and a node whose root file system is small. */
export const edgeLab = {
  labName: "edge",
  lab: {
    ...{ gateway: true, edge: true, rootMegabytes: 48 },
    agentEnv: (): Record<string, string> => ({ HOLDFAST_NODE_DISK_PRESSURE_PERCENT: "90" }),
  },
  user: "terminal",
} as const;
