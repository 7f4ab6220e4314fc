// holdfast ingress: runs beside the proxy in front of the node listeners and renews its certificates.

import { ApiError } from "@holdfast/contracts/errors";
import { ApiUnreachable } from "@holdfast/gateway/api-link/client";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings } from "@holdfast/kit/settings";
import { Command } from "commander";
import { Refusal, UnreachableError } from "../failure.ts";
import { getCertificates, keepCertificates } from "../ingress/keep.ts";
import { ingressSettings } from "../ingress/settings.ts";
import { localTime, printResult, printWarnings } from "../output.ts";
import { forgetSecrets, runConfigured } from "./processes.ts";

export function ingressCommand(): Command {
  return new Command("ingress")
    .description("renew the certificates of an nginx in front of the node listeners (see deploy/nginx)")
    .option("--once", "get them once and exit, before nginx starts")
    .option("--json", "print JSON; without --once, log lines are always JSON")
    .action(async ({ once, json }: { once?: boolean; json?: boolean }) => {
      const settings = readSettings(ingressSettings, process.env);
      if (!once) return runConfigured("ingress", settings, keepCertificates);
      printWarnings(warningsAboutUnsupported(process.env));
      forgetSecrets(process.env);
      const { names, notAfter } = await getCertificates(settings).catch(inWordsOfCommands);
      const { directory } = settings;
      const result = { directory, names, not_after: new Date(notAfter).toISOString() };
      printResult({ json: json === true }, result, ({ not_after }) =>
        [
          `Wrote listener.pem, ingress.pem and trust.pem to ${directory}, for ${names.join(", ")}.`,
          `They expire ${localTime(not_after)}.`,
        ].join("\n"),
      );
    });
}

function inWordsOfCommands(error: unknown): never {
  if (error instanceof ApiError) {
    const { code, message, nextStep, details } = error;
    throw new Refusal(code, { message, nextStep, details });
  }
  if (error instanceof ApiUnreachable) {
    throw new UnreachableError(`No api responds at ${ingressSettings.apiUrl.env}: ${error.message}`);
  }
  throw error;
}
