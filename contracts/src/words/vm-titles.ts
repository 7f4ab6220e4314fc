// What people read for the states of VMs: leases, base images on hosts, and builds of Jenkins that get one.

import type { VmImageEntry } from "../endpoints/images.ts";
import type { ItemVerdict, JenkinsBuildState, JenkinsControllerState } from "../endpoints/jenkins.ts";
import type { LeaseState } from "../endpoints/leases.ts";
import type { StateTitle } from "./state-titles.ts";

export const leaseStateTitles: Record<LeaseState, StateTitle> = {
  requested: { title: "Waiting for a host", meaning: "No host has taken the lease yet." },
  provisioning: { title: "Provisioning", meaning: "A host was chosen and prepares the VM." },
  booting: { title: "Booting", meaning: "The VM runs, and its guest has not connected yet." },
  connected: { title: "Connected", meaning: "The guest is connected and waits for work." },
  running: { title: "Running", meaning: "Work has started in the VM." },
  terminating: {
    title: "Terminating",
    meaning: "The host has not confirmed yet that the VM and everything of it is removed.",
  },
  terminated: { title: "Terminated", meaning: "The lease has ended, and nothing of its VM is left on a host." },
  failed: { title: "Failed", meaning: "No VM was started for the lease. The reason says why." },
  orphaned: {
    title: "Orphaned",
    meaning:
      "The VM is missing, or its host cannot confirm that it is removed. Removal is tried again until it is confirmed.",
  },
};

export const jenkinsControllerStateTitles: Record<JenkinsControllerState, StateTitle> = {
  unpolled: { title: "Not polled yet", meaning: "The controller was added, and its queue was not read yet." },
  working: { title: "Working", meaning: "The last poll of its queue succeeded." },
  failing: { title: "Failing", meaning: "The last poll of its queue failed. It is tried again by itself." },
  refused: {
    title: "Access refused",
    meaning:
      "The controller refuses the user or the API token, or the address is not allowed. A person has to act.",
  },
  disabled: { title: "Disabled", meaning: "No more VMs are requested for its queue." },
};

export const jenkinsBuildStateTitles: Record<JenkinsBuildState, StateTitle> = {
  claimed: { title: "Claimed", meaning: "A VM was decided on; its node on the controller is being created." },
  launching: {
    title: "Launching",
    meaning: "The lease was requested, and the agent in its VM has not connected yet.",
  },
  connected: { title: "Connected", meaning: "The agent is connected to the controller and waits for the build." },
  building: { title: "Building", meaning: "A build runs in the VM." },
  removing: { title: "Removing", meaning: "The VM and the node on the controller are being removed." },
  ended: { title: "Ended", meaning: "The lease has ended, and the node on the controller is deleted." },
};

export const itemVerdictTitles: Record<ItemVerdict, StateTitle> = {
  has_vm: { title: "Served", meaning: "A VM exists for the item, or is being made." },
  gets_vm: { title: "Being served", meaning: "A VM is being requested for the item." },
  not_buildable: { title: "Held back", meaning: "Jenkins itself holds the item back." },
  no_label: {
    title: "Without label",
    meaning: "The item has no label, and Holdfast's nodes run only builds with one.",
  },
  label_unreadable: { title: "Unreadable label", meaning: "The label of the item is no label expression." },
  not_served: { title: "Not served", meaning: "No label policy of the controller matches the item." },
  cap: { title: "At its limit", meaning: "The controller has as many VMs as it may have." },
  burst: { title: "Slowed down", meaning: "As many VMs were requested within the cooldown as are allowed." },
  cooldown: {
    title: "Cooling down",
    meaning: "The item's last VM failed; another one is requested after a pause.",
  },
};

export const hostImageStateTitles: Record<VmImageEntry["hosts"][number]["state"], StateTitle> = {
  ready: { title: "Ready", meaning: "The host has the image with the digest of the catalogue." },
  differs: {
    title: "Other digest",
    meaning: "The file on the host has another digest, and no VM is started from it.",
  },
  unusable: { title: "Unusable", meaning: "The host cannot use the file. The host's page says why." },
  pending: { title: "Being checked", meaning: "The host is computing the digest of the file." },
  fetching: { title: "Being fetched", meaning: "The host is fetching the image from its URL." },
  fetch_failed: { title: "Not fetched", meaning: "The host could not fetch the image. It tries again later." },
  removing: { title: "Being removed", meaning: "The image is retired, and the host removes its file." },
};
