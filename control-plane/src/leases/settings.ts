// Settings of leases, and the times that are not settings.

import { integer, setting } from "@holdfast/kit/settings";
import { retentionSetting } from "../tasks/settings.ts";

/** A heartbeat that was on its way when the launch was settled does not list the VM yet. */
export const MISSING_AFTER_SECONDS = 15;
/** How often each host is asked for what it has beside its VMs. */
export const INVENTORY_EVERY_SECONDS = 60;

export const leaseSettings = {
  vmLeaseTtlSeconds: setting(integer({ min: 60, max: 604_800 }), {
    env: "HOLDFAST_VM_LEASE_TTL_SECONDS",
    default: 14_400,
    help: "Number of seconds after which a VM is terminated, whatever it does, unless its request says otherwise. The host enforces it as well.",
  }),
  vmConnectDeadlineSeconds: setting(integer({ min: 5, max: 3600 }), {
    env: "HOLDFAST_VM_CONNECT_DEADLINE_SECONDS",
    default: 240,
    help: "Number of seconds within which the guest of a started VM has to connect; otherwise the VM is terminated.",
  }),
  vmDisconnectGraceSeconds: setting(integer({ min: 0, max: 3600 }), {
    env: "HOLDFAST_VM_DISCONNECT_GRACE_SECONDS",
    default: 60,
    help: "Number of seconds that a guest may be disconnected before its VM is terminated.",
  }),
  vmMostPerHost: setting(integer({ min: 1, max: 512 }), {
    env: "HOLDFAST_VM_MOST_PER_HOST",
    default: 512,
    help: "How many VMs a host has at most; a host may allow fewer.",
  }),
  vmMostInTotal: setting(integer({ min: 1, max: 100_000 }), {
    env: "HOLDFAST_VM_MOST_IN_TOTAL",
    default: 1000,
    help: "How many VMs an organization has at most, on all hosts.",
  }),
};

export const leaseWorkerSettings = { taskRetentionDays: retentionSetting };
