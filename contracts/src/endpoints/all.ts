// Every endpoint of the public API. What is not listed here is not served: the api process
// checks at start that each has exactly one handler.

import type { Endpoint } from "../endpoint.ts";
import { listAudit, listPlatformAudit } from "./audit.ts";
import { changePassword, getMe } from "./me.ts";
import {
  cancelInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  removeMember,
  updateMember,
} from "./members.ts";
import { createOrganization, getOrganization, listOrganizations, updateOrganization } from "./organizations.ts";
import { createAdminLink, getPlatformStatus } from "./platform.ts";
import { createProject, deleteProject, getProject, listProjects, updateProject } from "./projects.ts";
import { inspectLink, redeemLink, signIn, signOut } from "./sign-in.ts";
import { createToken, listTokens, revokeToken } from "./tokens.ts";

export const allEndpoints: readonly Endpoint[] = [
  signIn,
  signOut,
  inspectLink,
  redeemLink,
  getMe,
  changePassword,
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
  inviteMember,
  listInvitations,
  cancelInvitation,
  updateMember,
  removeMember,
  listTokens,
  createToken,
  revokeToken,
  listAudit,
  listPlatformAudit,
  getPlatformStatus,
  createAdminLink,
];
