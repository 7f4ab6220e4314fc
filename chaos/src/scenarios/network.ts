// The network between node and api.

import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { ExpectedSighting } from "../expectations.ts";
import type { Fault } from "../faults/fault.ts";
import { together } from "../faults/fault.ts";
import { nameLeadsTo, nameRefused } from "../faults/names.ts";
import {
  answersDropped,
  connectionsForgotten,
  connectionsReset,
  egressDropped,
  egressRejected,
  lossy,
  nameServerSilent,
} from "../faults/network.ts";
import { delayed } from "../faults/relay.ts";
import type { Lab } from "../lab/lab.ts";
import type { Scenario } from "../scenario.ts";
import { PATIENCE_SECONDS, within } from "../until.ts";
import { cutOff, offline } from "./cut-off.ts";

export const dropped: Scenario = {
  name: "egress-dropped",
  title: "a firewall swallows what the node sends to the api",
  ...offline("api_unreachable", 45),
  lab: { second: true },
  async run(story) {
    const { lab } = story;
    const meanwhile = async () => {
      await story.succeeds(await story.gives({ node: lab.second }));
      story.notes("the second node works on");
    };
    await cutOff(story, egressDropped(lab), "api_unreachable", { meanwhile });
  },
};

export const rejected: Scenario = {
  name: "egress-rejected",
  title: "a firewall refuses what the node sends to the api",
  ...offline("api_unreachable", 25),
  run: (story) => cutOff(story, egressRejected(story.lab), "api_unreachable"),
};

export const oneWay: Scenario = {
  name: "egress-one-way",
  title: "what the node sends arrives, what the api answers does not",
  ...offline("api_unreachable", 45, [delivered("api_unreachable")]),
  async run(story) {
    const began = Date.now() - 5_000;
    await cutOff(story, answersDropped(story.lab), "api_unreachable");
    // Either our own deadline or the kernel's, which asks an idle connection for a sign of life.
    const unanswered = ({ detail }: DiagnosticRecord) => /^(NO_ANSWER_IN_TIME|read ETIMEDOUT)/.test(detail);
    const { correlation_id } = await story.historyHas("api_unreachable", unanswered);
    const atApi = story.lab.control.api().line((line) => line.correlation_id === correlation_id, began);
    await within("the api's log has the request that was not answered", PATIENCE_SECONDS, atApi);
    story.notes("the api's log has the request of that record: it arrived");
  },
};

export const nameRefusedStory: Scenario = {
  name: "dns-refused",
  title: "the name server refuses to answer",
  ...offline("api_name_unresolved", 25),
  run: (story) => cutOff(story, atNextConnection(story.lab, nameRefused(story.lab)), "api_name_unresolved"),
};

export const nameSilent: Scenario = {
  name: "dns-silent",
  title: "the name server does not answer",
  ...offline("api_name_unresolved", 40),
  run: (story) => cutOff(story, atNextConnection(story.lab, nameServerSilent(story.lab)), "api_name_unresolved"),
};

export const nameWrong: Scenario = {
  name: "dns-wrong",
  title: "the name server returns the address of another machine",
  ...offline("api_unreachable", 25, [delivered("api_unreachable")]),
  async run(story) {
    const { lab } = story;
    const elsewhere = lab.node.gateway;
    await cutOff(story, atNextConnection(lab, nameLeadsTo(lab, elsewhere)), "api_unreachable");
    // The first record may be of the connection that was there before.
    await story.historyHas("api_unreachable", ({ detail }) => detail.includes(`led to ${elsewhere}`));
    story.notes(`diagnose names the wrong address: ${elsewhere}`);
  },
};

export const halfOpen: Scenario = {
  name: "half-open",
  title: "the router reboots and has forgotten all connections",
  expect: { sightings: [{ by: "history", code: "api_unreachable", within: 60 }] },
  async run(story) {
    await story.breaks(connectionsForgotten(story.lab));
    // Handed to a connection that nobody is at the other end of.
    const task = await story.gives();
    await story.succeeds(task);
    story.notes("the task was done over a new connection, without any repair");
    await story.historyHas("api_unreachable");
    await story.repairs();
    await story.recovers();
  },
};

export const lossAndDelay: Scenario = {
  name: "loss-and-delay",
  title: "30 % of all packets are lost and the rest takes 300 ms longer",
  expect: {
    before: { causes: ["link_slow node_agent_link_slow P2 environment_networking"] },
    sightings: [{ by: "dashboard", code: "link_slow", within: 120 }],
  },
  async run(story) {
    const { lab } = story;
    await story.breaks(together("a bad line", delayed(lab, 300), lossy(lab, 30)));
    await story.dashboardSees("link_slow");
    const task = await story.gives();
    await story.succeeds(task);
    story.notes("tasks are done all the same");
    await story.repairs();
    await story.recovers();
  },
};

/** The agent has delivered it afterwards. */
function delivered(code: string): ExpectedSighting {
  return { by: "history", code, within: 180 };
}

/**
 * Names matter to new connections only: those that exist are reset. They are reset first: over one that still exists, an agent
 * that cannot open a second one would report why.
 */
function atNextConnection(lab: Lab, fault: Fault): Fault {
  return together(`${fault.what}, and the node has to connect again`, connectionsReset(lab), fault);
}
