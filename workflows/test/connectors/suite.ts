// What every connector owes. A connector passes it with an example of each of its actions and a stand-in of its service.

import { connectorFailures } from "@holdfast/contracts/execution/connector-failures";
import { allowanceOf } from "@holdfast/kit/addresses";
import { describe, expect, it } from "vitest";
import * as all from "../../src/connectors/all.ts";
import type { Connector } from "../../src/connectors/connector.ts";
import {
  type ActionOutcome,
  type ActionRequest,
  describeAction,
  runAction,
} from "../../src/connectors/run-action.ts";
import { networkOf } from "../../src/connectors/send/network.ts";
import type { Reply } from "./server.ts";

/** A value that looks like nothing else, and is no text of the connectors. */
export const SECRET = "s3cr3t-Zq81xW+/vv7-needle";

const loopback = networkOf(allowanceOf(["127.0.0.1"]));
export const publicOnly = networkOf(allowanceOf([]));

/** With a key, the network of loopback and time enough. */
export const run = (request: Pick<ActionRequest, "connector" | "action" | "input"> & Partial<ActionRequest>) =>
  runAction({ idempotencyKey: "run:step:1", network: loopback, signal: AbortSignal.timeout(30_000), ...request });

export const codeOf = (outcome: ActionOutcome) => ("failure" in outcome ? outcome.failure.code : "succeeded");

export type Service = {
  /** How many requests or mails have arrived. */
  arrived(): number;
  /** What has arrived, as text. */
  transcript(): string;
  /** Fields of the input that lead to this service. */
  input: Record<string, unknown>;
  secret: string;
  /** Plays the next answer, for services over HTTP. */
  next?(reply: Reply): void;
};

export type Example = { input: Record<string, unknown>; output: unknown; lineField?: string };

export function connectorSuite(
  name: string,
  open: () => Promise<Service>,
  examples: Record<string, Example>,
): void {
  const { actions, usesNetwork } = (all as Record<string, Connector>)[name] as Connector;

  describe(`the connector ${name}`, () => {
    it("SEC-04 says that it uses the network, and has the actions of its examples", () => {
      expect(usesNetwork).toBe(true);
      for (const action of Object.keys(examples)) expect(Object.keys(actions)).toContain(action);
    });

    for (const [action, example] of Object.entries(examples)) {
      const wanted = actions[action];
      const step = (service: Service) => ({
        ...{ connector: name, action, secret: service.secret },
        input: { ...example.input, ...service.input },
      });

      it(`FLOW-01 ${action} does what it says, as its schemas say`, async () => {
        const service = await open();
        const outcome = await run(step(service));
        expect(outcome).toEqual({ output: example.output });
        expect(service.arrived()).toBe(1);
        expect(wanted?.output.safeParse("output" in outcome && outcome.output).success).toBe(true);
        expect(wanted?.input.safeParse(step(service).input).success).toBe(true);
      });

      it(`FLOW-01 ${action} sends nothing in a dry run, and shows what it would send without the secret`, async () => {
        const service = await open();
        const given = { ...step(service), idempotencyKey: "run:step:1" };
        const described = await describeAction(given);
        expect(described).toHaveProperty("message.kind");
        expectNoSecret(described, service.secret);
        expect(await describeAction({ ...given, secret: undefined })).toHaveProperty("message.kind");
        expect(service.arrived()).toBe(0);
      });

      it(`FLOW-01 ${action} refuses fields that it does not know, before anything is sent`, async () => {
        const service = await open();
        const given = step(service);
        const outcome = await run({ ...given, input: { ...given.input, surprise: 1 } });
        expect(outcome).toMatchObject({
          failure: { code: "input_invalid" },
          retryable: false,
          outcomeKnown: true,
        });
        expect(JSON.stringify(outcome)).toContain("surprise");
        expect(service.arrived()).toBe(0);
      });

      it(`SEC-02 ${action} never returns its secret, whatever the service says`, async () => {
        const service = await open();
        expectNoSecret(await run(step(service)), service.secret);
        expect(service.transcript(), "the service got it").not.toBe("");
        if (!service.next) return;
        for (const status of [200, 201, 302, 400, 401, 403, 404, 429, 500]) {
          const echoed = { message: `you sent ${service.secret}`, id: service.secret, html_url: service.secret };
          service.next({
            status,
            body: echoed,
            headers: { location: `http://127.0.0.1:1/${encodeURIComponent(service.secret)}` },
          });
          expectNoSecret(await run(step(service)), service.secret);
        }
        // Where the text is cut, most of the secret would be left.
        service.next({
          status: 400,
          body: { message: `${"x".repeat(299 - service.secret.length)}${service.secret}.` },
        });
        const cut = JSON.stringify(await run(step(service)));
        expect(cut).not.toContain(service.secret.slice(0, 8));
      });

      it(`SEC-04 ${action} does not reach loopback from the worker`, async () => {
        const service = await open();
        const outcome = await run({ ...step(service), network: publicOnly });
        expect(outcome).toMatchObject({
          failure: { code: "address_refused" },
          retryable: false,
          outcomeKnown: true,
        });
        expect(service.arrived()).toBe(0);
      });

      it(`FLOW-04 ${action} ends when its time is over, and when it is cancelled`, async () => {
        const service = await open();
        const late = await run({
          ...step(service),
          signal: AbortSignal.abort(new DOMException("x", "TimeoutError")),
        });
        expect(late).toMatchObject({ failure: { code: "timed_out" }, outcomeKnown: true });
        expect(codeOf(await run({ ...step(service), signal: AbortSignal.abort() }))).toBe("cancelled");
        expect(service.arrived()).toBe(0);
      });

      if (wanted?.secret?.required) {
        it(`SEC-02 ${action} says that its secret is missing, and refuses one that would begin another header`, async () => {
          const service = await open();
          expect(codeOf(await run({ ...step(service), secret: undefined }))).toBe("secret_missing");
          expect(codeOf(await run({ ...step(service), secret: `${SECRET}\r\nX-Evil: 1` }))).toBe("secret_refused");
          expect(service.arrived()).toBe(0);
        });
      }

      const { lineField } = example;
      if (lineField !== undefined) {
        it.for(["a\r\nX-Evil: 1", "a\nBcc: b@example.com", "a\0b", "a\x7fb"])(
          `SEC-04 ${action} takes no control characters in ${lineField}: %j`,
          async (text) => {
            const service = await open();
            const given = step(service);
            const outcome = await run({ ...given, input: { ...given.input, [lineField]: text } });
            expect(codeOf(outcome)).toBe("input_invalid");
            expect(service.arrived()).toBe(0);
          },
        );
      }
    }
  });
}

/** For services over HTTP: what each status means. */
export function statusSuite(
  name: string,
  open: () => Promise<Service>,
  { action, input }: { action: string; input: Record<string, unknown> },
): void {
  describe(`the connector ${name}, when its service fails`, () => {
    const attempt = async (reply: Reply, signal = AbortSignal.timeout(30_000)) => {
      const service = await open();
      service.next?.(reply);
      const given = { connector: name, action, secret: service.secret, input: { ...input, ...service.input } };
      return { service, outcome: await run({ ...given, signal }) };
    };

    it.for([
      [302, "redirected", true],
      [307, "redirected", true],
      [400, "request_refused", true],
      [401, "secret_refused", true],
      [403, "secret_refused", true],
      [404, "target_not_found", true],
      [422, "request_refused", true],
      [429, "rate_limited", true],
      [500, "service_failed", false],
      [502, "service_failed", false],
      [503, "service_failed", true],
    ] as const)("FLOW-04 %i is %s", async ([status, code, outcomeKnown]) => {
      const { outcome, service } = await attempt({ status, headers: { location: "http://127.0.0.1:9/" } });
      const { retryable } = connectorFailures[code];
      expect(outcome).toMatchObject({ failure: { code }, retryable, outcomeKnown });
      expect(service.arrived()).toBe(1);
    });

    it("FLOW-04 waits as long as the service asks for", async () => {
      const { outcome } = await attempt({ status: 429, headers: { "retry-after": "7" } });
      expect(outcome).toMatchObject({ retryAfterMs: 7_000 });
    });

    it("FLOW-04 a connection that is cut may have had its effect", async () => {
      const { outcome } = await attempt({ status: 0, instead: "cut" });
      expect(outcome).toMatchObject({
        failure: { code: "connection_lost" },
        retryable: true,
        outcomeKnown: false,
      });
    });

    it("FLOW-04 an answer that never comes may have had its effect", async () => {
      const { outcome } = await attempt({ status: 0, instead: "silence" }, AbortSignal.timeout(1_000));
      expect(outcome).toMatchObject({ failure: { code: "timed_out" }, retryable: true, outcomeKnown: false });
    });

    it("FLOW-01 a response that is too large is not kept", async () => {
      const { outcome } = await attempt({ status: 200, body: "x".repeat(300_000) });
      expect(outcome).toMatchObject({ failure: { code: "response_too_large" }, retryable: false });
    });
  });
}

function expectNoSecret(value: unknown, secret: string): void {
  const text = JSON.stringify(value);
  const forms = [secret, secret.slice(0, 12), JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
  for (const before of ["", "a", "ab"]) {
    forms.push(
      Buffer.from(before + secret)
        .toString("base64")
        .slice(before.length + 1, before.length + 20),
    );
  }
  for (const form of forms) expect(text).not.toContain(form);
}
