// Steps of every kind on an agent of its own, dispatched by a stand-in gateway over a real WebSocket.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { startTestExecutionAgent } from "./support/execution-agent.ts";
import { startStandInGateway } from "./support/stand-in-gateway.ts";

async function connected(options: Parameters<typeof startTestExecutionAgent>[1] = {}) {
  const gateway = await startStandInGateway();
  const agent = await startTestExecutionAgent(gateway, options);
  const socket = await gateway.socket();
  return { gateway, agent, socket };
}

const journalsOf = (directory: string, agentId: string) =>
  ["journal.a", "journal.b"].map((name) => readFileSync(join(directory, "executions", agentId, name), "latin1"));

describe("an agent that runs steps", () => {
  it("EXEC-01 says what it can do", async () => {
    const { socket } = await connected({ tags: ["east", "group:alpha"], maxInFlight: 3 });
    expect(socket.hello).toEqual({
      ...{ type: "hello", agentVersion: "1.0.0", name: "test-agent", protocolVersion: 1, keySetVersion: 1 },
      capabilities: {
        ...{ kinds: ["connector.action", "agent.execute"], connectors: ["echo"] },
        ...{ tags: ["east", "group:alpha"], maxInFlight: 3 },
      },
      holding: [],
      journalId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it("EXEC-02 echoes, after it has accepted the request, and forgets it when its result is acknowledged", async () => {
    const { gateway, agent, socket } = await connected();
    const order = gateway.order({ payload: { connectorId: "echo", actionId: "echo", input: { a: [1, "ü"] } } });
    socket.send(order);
    const { requestId } = order;
    expect(await gateway.result(requestId)).toEqual({
      ...{ type: "execute_result", requestId, generation: 1 },
      ...{ status: "succeeded", output: { a: [1, "ü"] } },
    });
    // One that ends at once is accepted by its result.
    expect(socket.frames.map(({ type }) => type)).toEqual(["hello", "execute_result"]);
    socket.cut();
    const next = await gateway.socket(socket);
    expect(next.hello?.holding).toEqual([]);
    await agent.stop();
  });

  it("EXEC-02 runs a script with its own environment and directory, and reports what it printed while it ran and after", async () => {
    process.env["LEAKED_FROM_AGENT"] = "1";
    const { gateway, agent, socket } = await connected();
    delete process.env["LEAKED_FROM_AGENT"];
    const script = 'pwd; echo "$GREETING" >&2; env | cut -d= -f1 | sort | tr "\\n" " "; touch here; exit 3';
    const order = gateway.shell(script, { task: { env: { GREETING: "hi" } }, secret: "s3cret-value" });
    socket.send(order);
    const { status, error, output } = await gateway.result(order.requestId);
    expect({ status, error, output }).toEqual({
      ...{ status: "failed", error: "NODE_EXECUTION_FAILED" },
      output: {
        ...{ backend: "host", exitCode: 3, timedOut: false, stderr: "hi\n" },
        stdout: expect.stringMatching(
          `^${agent.workdir}/[0-9a-f-]{36}\\nGREETING HOLDFAST_EXECUTION_RUN HOLDFAST_EXECUTION_SECRET HOME LANG (OLDPWD )?PATH PWD (SHLVL )?TMPDIR (_ )?$`,
        ),
        ...{ stdoutTruncated: false, stderrTruncated: false },
      },
    });
    const logs = socket.of("log");
    expect(logs.map(({ seq }) => seq)).toEqual(logs.map((_, index) => index + 1));
    const streamed = (stream: string) => logs.filter((one) => one.stream === stream).map(({ text }) => text);
    expect(streamed("stderr").join("")).toBe("hi\n");
    expect(streamed("stdout").join("")).toBe((output as { stdout: string }).stdout);
    expect(socket.of("progress")).toMatchObject([{ message: "The script runs on the backend host." }]);
    expect(readdirSync(agent.workdir)).toEqual([]);
    expect(agent.logged()).not.toContain("s3cret-value");
  });

  it("EXEC-02 gives the secret to the script and to nobody else: not to its arguments, the journal or the log", async () => {
    const { gateway, agent, socket } = await connected();
    const order = gateway.shell(
      'test "$HOLDFAST_EXECUTION_SECRET" = s3cret-value; echo $?; tr "\\0" " " < /proc/$$/cmdline',
      {
        secret: "s3cret-value",
      },
    );
    socket.send(order);
    const { output } = await gateway.result(order.requestId);
    expect(output).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^0\nsh -c set -- /) });
    await agent.stop();
    for (const journal of journalsOf(agent.directory, gateway.agentId)) {
      expect(journal).not.toMatch(/s3cret-value|HOLDFAST_EXECUTION_SECRET/);
    }
    expect(agent.logged()).not.toMatch(/s3cret-value/);
  });

  it("AGENT-10 removes the secret from all that leaves the host: live output, result, error and progress", async () => {
    const { gateway, agent, socket } = await connected({ hostSecrets: ["value-of-the-host"] });
    const secret = 's3cret/"value"';
    const script = [
      // Two reads, most likely: the redactor's own tests cut at every place.
      'printf "plain "; printf "%s" "$HOLDFAST_EXECUTION_SECRET" | head -c 9; sleep 0.1',
      'printf "%s\\n" "$HOLDFAST_EXECUTION_SECRET" | tail -c +10',
      'printf "%s" "$HOLDFAST_EXECUTION_SECRET" | base64',
      'printf "%s" "$HOLDFAST_EXECUTION_SECRET" | od -An -tx1 >&2',
      "echo value-of-the-host; exit 3",
    ].join("\n");
    const order = gateway.shell(script, { secret });
    socket.send(order);
    const { output } = await gateway.result(order.requestId);
    const stdout = "plain [secret]\n[secret]=\n[secret]\n";
    expect(output).toMatchObject({ exitCode: 3, stdout, stderr: " [secret]\n" });
    const streamed = (stream: string) => socket.of("log").filter((one) => one.stream === stream);
    const textOf = (stream: string) =>
      streamed(stream)
        .map(({ text }) => text)
        .join("");
    expect([textOf("stdout"), textOf("stderr")]).toEqual([stdout, " [secret]\n"]);

    const echo = gateway.order({
      ...{
        secret,
        payload: { connectorId: "echo", actionId: "echo", input: { text: JSON.stringify({ secret }) } },
      },
    });
    socket.send(echo);
    expect((await gateway.result(echo.requestId)).output).toEqual({ text: '{"secret":"[secret]"}' });
    const unknown = gateway.order({ secret, payload: { connectorId: `x ${secret}`, actionId: "echo" } });
    socket.send(unknown);
    expect((await gateway.result(unknown.requestId)).error).toMatch(/no connector "x \[secret\]"$/);
    await agent.stop();
    const everything = [
      JSON.stringify(socket.frames),
      agent.logged(),
      ...journalsOf(agent.directory, gateway.agentId),
    ];
    for (const text of everything) expect(text).not.toMatch(/s3cret|czNjcmV0|value-of-the-host/);
  });

  it("EXEC-02 keeps the first 65,536 characters of each stream", async () => {
    const { gateway, socket } = await connected();
    const order = gateway.shell("head -c 200000 /dev/zero | tr '\\0' x; head -c 65536 /dev/zero | tr '\\0' y >&2");
    socket.send(order);
    const { output } = await gateway.result(order.requestId);
    const marker = "\n[output limit of 65536 characters reached: the rest was discarded]\n";
    expect(output).toMatchObject({
      ...{ exitCode: 0, stdoutTruncated: true, stderrTruncated: false },
      ...{ stdout: `${"x".repeat(65_536)}${marker}`, stderr: "y".repeat(65_536), limit: "output" },
    });
  });

  it("EXEC-05 ends a script at its deadline, with everything that it started", async () => {
    const { gateway, socket } = await connected();
    const file = join(scratchDirectory(), "pids");
    const script = `echo $$ >> ${file}; (setsid sh -c 'echo $$ >> ${file}; sleep 1000') & sleep 1000 & echo $! >> ${file}; echo begun; wait`;
    const order = gateway.shell(script, { timeoutMs: 2000 });
    socket.send(order);
    const result = await gateway.result(order.requestId);
    expect(result).toMatchObject({
      ...{ status: "failed", error: "NODE_EXECUTION_TIMEOUT" },
      output: { exitCode: null, timedOut: true, stdout: "begun\n" },
    });
    const pids = readFileSync(file, "utf8").trim().split("\n");
    expect(pids).toHaveLength(3);
    for (const pid of pids) expect(isRunning(pid)).toBe(false);
  });

  it("EXEC-05 ends what a script has left running when it ends by itself", async () => {
    const { gateway, socket } = await connected();
    const file = join(scratchDirectory(), "pid");
    const order = gateway.shell(`nohup sleep 1000 >/dev/null 2>&1 & echo $! > ${file}; echo done`);
    socket.send(order);
    expect(await gateway.result(order.requestId)).toMatchObject({
      status: "succeeded",
      output: { stdout: "done\n" },
    });
    expect(isRunning(readFileSync(file, "utf8").trim())).toBe(false);
  });

  it("EXEC-02 says that there was nothing to run", async () => {
    const { gateway, socket } = await connected();
    const payload = { nodeId: "n", node: { id: "n", type: "agent.execute", config: {} } };
    const order = gateway.order({ kind: "agent.execute", payload });
    socket.send(order);
    const message = "The step has no task: nothing was run.";
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "succeeded", output: { accepted: true, executed: false, message } },
    });
  });

  it.for([
    [
      { HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "" },
      "the backend host cannot enforce .*ALLOW_UNENFORCED=memory,pids,disk,cpu",
    ],
    [{ HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "memory,cpu" }, "ALLOW_UNENFORCED=pids,disk and restart"],
  ] as const)("SBX-02 runs no script whose limits nothing enforces: %j", async ([env, why]) => {
    const { gateway, socket } = await connected({ env });
    const file = join(scratchDirectory(), "ran");
    const order = gateway.shell(`touch ${file}`);
    socket.send(order);
    const { status, error } = await gateway.result(order.requestId);
    expect([status, error]).toEqual(["failed", expect.stringMatching(`^NODE_EXECUTION_FAILED: .*${why}`)]);
    expect(existsSync(file)).toBe(false);
  });

  it("EXEC-03 declines what is more than maxInFlight, and takes more when there is room", async () => {
    const { gateway, socket } = await connected({ maxInFlight: 1 });
    const fifo = join(scratchDirectory(), "go");
    const first = gateway.shell(`while [ ! -e ${fifo} ]; do sleep 0.05; done`);
    const second = gateway.shell("true");
    socket.send(first);
    await expect.poll(() => socket.of("accepted")).toHaveLength(1);
    socket.send(second);
    await expect
      .poll(() => socket.of("declined"))
      .toMatchObject([{ requestId: second.requestId, reason: "the agent runs 1 steps, and maxInFlight is 1" }]);
    const { writeFileSync } = await import("node:fs");
    writeFileSync(fifo, "");
    await gateway.result(first.requestId);
    socket.send({ ...second, generation: 2 });
    expect(await gateway.result(second.requestId)).toMatchObject({ status: "succeeded", generation: 2 });
  });
});

function isRunning(pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
