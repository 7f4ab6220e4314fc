// Every endpoint of the public API. What is not listed here is not served: the api process
// checks at start that each has exactly one handler.

import type { Endpoint } from "../endpoint.ts";
import { getAgentRelease } from "./agent-release.ts";
import {
  createAllocation,
  createAllocationGrant,
  getAllocation,
  listAllocationGrants,
  listAllocations,
  releaseAllocation,
  repairAllocation,
  revokeAllocationGrant,
  transferAllocation,
} from "./allocations.ts";
import { listAudit, listPlatformAudit } from "./audit.ts";
import {
  createEnrollmentToken,
  enrollNode,
  getTrustBundle,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "./enrollment.ts";
import { getFleet, getFleetPicture } from "./fleet.ts";
import { changePassword, getMe } from "./me.ts";
import {
  cancelInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  listMemberTokens,
  removeMember,
  updateMember,
} from "./members.ts";
import { changeNode, getNode, listNodeDiagnostics, listNodes, renameNode } from "./nodes.ts";
import { createOrganization, getOrganization, listOrganizations, updateOrganization } from "./organizations.ts";
import { createAdminLink, getPlatformStatus } from "./platform.ts";
import { createProject, deleteProject, getProject, listProjects, updateProject } from "./projects.ts";
import { getQuotas, updateMemberQuota, updateQuotas } from "./quotas.ts";
import { endSession, listMyTokens, listSessions, signOutEverywhere } from "./sessions.ts";
import { inspectLink, redeemLink, signIn, signOut } from "./sign-in.ts";
import { listTaskSigningKeys, rotateTaskSigningKey } from "./task-signing-keys.ts";
import { cancelTask, createTask, getTask, listTasks, listTaskTypes } from "./tasks.ts";
import {
  closeTerminal,
  createTerminalToken,
  getTerminal,
  listMyTerminals,
  listTerminals,
  reportTerminalFailure,
} from "./terminals.ts";
import { createToken, listTokens, revokeToken } from "./tokens.ts";

export const allEndpoints: readonly Endpoint[] = [
  signIn,
  signOut,
  inspectLink,
  redeemLink,
  getMe,
  changePassword,
  listSessions,
  endSession,
  signOutEverywhere,
  listMyTokens,
  listOrganizations,
  createOrganization,
  getOrganization,
  updateOrganization,
  listProjects,
  createProject,
  getProject,
  updateProject,
  deleteProject,
  listMembers,
  listMemberTokens,
  inviteMember,
  listInvitations,
  cancelInvitation,
  updateMember,
  removeMember,
  listTokens,
  createToken,
  revokeToken,
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  getAgentRelease,
  getTrustBundle,
  enrollNode,
  getFleet,
  getFleetPicture,
  listNodes,
  getNode,
  renameNode,
  changeNode,
  listNodeDiagnostics,
  listTaskTypes,
  createTask,
  listTasks,
  getTask,
  cancelTask,
  listAllocations,
  createAllocation,
  getAllocation,
  releaseAllocation,
  repairAllocation,
  transferAllocation,
  createAllocationGrant,
  listAllocationGrants,
  revokeAllocationGrant,
  getQuotas,
  updateQuotas,
  updateMemberQuota,
  createTerminalToken,
  listTerminals,
  listMyTerminals,
  getTerminal,
  closeTerminal,
  reportTerminalFailure,
  listAudit,
  listPlatformAudit,
  getPlatformStatus,
  createAdminLink,
  listTaskSigningKeys,
  rotateTaskSigningKey,
];
