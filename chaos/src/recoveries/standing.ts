// What an operator or the platform decides about a node, and takes back.

import { addressOfAnotherProfile } from "../faults/host.ts";
import { otherClientCa, signingCaLost } from "../faults/identity.ts";
import type { Recovery } from "./recovery.ts";
import { joinAgain } from "./steps.ts";
import { anHourPasses, hoursPass, minutesPass } from "./time.ts";

const nothing = async () => undefined;

export const quarantined: Recovery = {
  name: "quarantined",
  title: "an operator quarantines the node",
  async run(story) {
    const { name } = story.lab.node;
    const inject = async () => void (await story.desk("node", "quarantine", name));
    await story.breaks({ what: "the node is quarantined", inject, repair: nothing });
    await story.isClassified("identity_revoked_or_fenced");
    await story.desk("node", "reactivate", name);
    await story.isGreen(["node.change"]);
  },
};

export const revoked: Recovery = {
  name: "revoked",
  title: "an operator revokes the node",
  async run(story) {
    const { name } = story.lab.node;
    const inject = async () => void (await story.desk("node", "revoke", name, "--yes"));
    await story.breaks({ what: "the node is revoked", inject, repair: nothing });
    await story.isClassified("identity_revoked_or_fenced");
    await story.hostRecords("identity_revoked");
    await joinAgain(story, await story.desk("node", "token", "create", "--node", name));
    await story.desk("node", "reactivate", name);
    await story.isGreen(["node.token_create", "node.enroll", "node.change"]);
  },
};

export const endpointDrift: Recovery = {
  name: "endpoint-drift",
  title: "the host's settings name the address of another environment",
  async run(story) {
    await story.breaks(addressOfAnotherProfile(story.lab.node));
    await story.handsInRecords("endpoint_profile_drift");
    await story.isClassified("endpoint_profile_drift");
    await story.repairs();
    await story.isGreen([]);
  },
};

export const caLost: Recovery = {
  name: "signing-ca-lost",
  title: "the api is restarted without the CA that signs certificates of nodes",
  async run(story) {
    await story.breaks(signingCaLost(story.lab));
    await story.isClassified("cert_untrusted_by_ingress");
    await story.repairs();
    await story.isGreen([]);
  },
};

export const ingressCaSwapped: Recovery = {
  name: "ingress-ca-swapped",
  title: "nginx in front of the server is reloaded with another CA",
  async run(story) {
    await story.breaks(otherClientCa(story.lab));
    await story.isClassified("cert_untrusted_by_ingress");
    await story.repairs();
    // A rejection counts for two minutes, because several ingresses may have one address.
    minutesPass(story.lab, 3);
    await story.isGreen([]);
  },
};

export const outage: Recovery = {
  name: "outage-beyond-expiry",
  title: "the control plane is down until the node's certificate has expired",
  async run(story) {
    const { lab } = story;
    await anHourPasses(lab);
    await story.breaks({
      what: "the api is down for 23.5 hours",
      async inject() {
        await lab.control.api().stop("SIGKILL");
        hoursPass(lab, 23.5);
        await lab.control.startApi();
      },
      repair: nothing,
    });
    await story.isClassified("cert_expired");
    await story.isGreen(["node.recover"]);
  },
};
