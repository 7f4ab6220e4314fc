// A noun as a module: everything that the processes have to know about it. The list is `modules.ts`; api and worker walk
// over it and name no noun themselves. Settings and declarations are needed before anything runs, also by `holdfast up`,
// so a `module.ts` imports its routes and jobs only when they are called for.

import type { Settings, Values } from "@holdfast/kit/settings";
import type { ApiContext, ApiJobContext } from "./api/context.ts";
import type { InternalApi } from "./internal-api/route.ts";
import type { LiveTopic } from "./live/topic.ts";
import type { Job } from "./mechanisms/background/job.ts";
import type { NodeApi } from "./node-api/route.ts";
import type { WorkerContext } from "./worker/context.ts";

type ApiJob<S extends Settings> = Job<ApiJobContext & { settings: Values<S> }> & {
  runsIn: "each api";
};
type WorkerJob<S extends Settings> = Job<WorkerContext & { settings: Values<S> }> & {
  runsIn: "one worker" | "each worker";
};

type Routes = {
  /** On the public listener. */
  publicRoutes?(api: ApiContext): Promise<void>;
  /** On the node-facing listener; `api.http` is that listener, for routes that need no certificate. */
  nodeRoutes?(nodeApi: NodeApi, api: ApiContext): Promise<void>;
  /** On the internal listener, for the other processes of the installation. */
  internalRoutes?(internalApi: InternalApi, api: ApiContext): Promise<void>;
};

type Declaration<Api extends Settings, Worker extends Settings> = Routes & {
  name: string;
  apiSettings?: Api;
  workerSettings?: Worker;
  liveTopics?: readonly LiveTopic[];
  jobs?: readonly (ApiJob<NoInfer<Api>> | WorkerJob<NoInfer<Worker>>)[];
};

type DefinedModule<Api extends Settings, Worker extends Settings> = Routes & {
  name: string;
  apiSettings: Api;
  workerSettings: Worker;
  liveTopics: readonly LiveTopic[];
  apiJobs: readonly ApiJob<Api>[];
  workerJobs: readonly WorkerJob<Worker>[];
};

/** Any of them; its jobs run only with the settings of their own module at hand. */
export type Module = Omit<DefinedModule<Settings, Settings>, "apiJobs" | "workerJobs"> & {
  apiJobs: readonly Job<never>[];
  workerJobs: readonly Job<never>[];
};

export function defineModule<
  Api extends Settings = Record<never, never>,
  Worker extends Settings = Record<never, never>,
>(declared: Declaration<Api, Worker>): DefinedModule<Api, Worker> {
  const { jobs = [], ...rest } = declared;
  return {
    apiSettings: {} as Api,
    workerSettings: {} as Worker,
    liveTopics: [],
    ...rest,
    apiJobs: jobs.filter((job) => job.runsIn === "each api"),
    workerJobs: jobs.filter((job) => job.runsIn !== "each api"),
  };
}

type Process = "apiSettings" | "workerSettings";
type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

export type SettingsOf<Modules extends Record<string, Module>, Of extends Process> = Intersection<
  Modules[keyof Modules][Of]
>;

/** Of all modules. Several may read the same setting, by the same declaration. */
export function settingsOf<Modules extends Record<string, Module>, Of extends Process>(
  modules: Modules,
  process: Of,
): SettingsOf<Modules, Of> {
  const merged: Settings = {};
  for (const module of Object.values(modules)) {
    for (const [key, declared] of Object.entries(module[process])) {
      if (merged[key] !== undefined && merged[key] !== declared) {
        throw new Error(`${module.name} declares the setting ${key}, which another module declares differently`);
      }
      merged[key] = declared;
    }
  }
  return merged as SettingsOf<Modules, Of>;
}
