// User data of a VM that is the agent of one build: a script for cloud-init, or for any program that runs user data. It writes the
// settings of the agent to both places that document 002 names, fetches agent.jar from the controller, and keeps the agent connected.

import { REMOTE_DIRECTORY } from "./client/node.ts";

export const ENV_FILES = ["/usr/local/etc/jenkins-qemu/jenkins-agent.env", "/etc/jenkins-agent.env"] as const;

export type AgentSettings = { url: string; nodeName: string; secret: string };

/** Needs a POSIX shell, java, and curl, fetch or wget. The secret is in files that only root reads, and in no argument. */
export function agentUserData({ url, nodeName, secret }: AgentSettings): string {
  return `#!/bin/sh
# Connects this VM to its Jenkins controller as the agent of one build.
umask 077
for file in ${ENV_FILES.join(" ")}; do
  mkdir -p "\${file%/*}" || continue
  cat > "$file" <<'HOLDFAST_END'
JENKINS_URL=${quoted(url)}
JENKINS_AGENT_NAME=${quoted(nodeName)}
JENKINS_SECRET=${quoted(secret)}
JENKINS_AGENT_WORKDIR=${quoted(REMOTE_DIRECTORY)}
HOLDFAST_END
done
get() {
  if command -v curl > /dev/null; then curl -fsS -o "$2" "$1"
  elif command -v fetch > /dev/null; then fetch -q -o "$2" "$1"
  else wget -q -O "$2" "$1"
  fi
}
agent() {
  trap '' HUP
  [ -r ${ENV_FILES[0]} ] && . ${ENV_FILES[0]} || . ${ENV_FILES[1]}
  mkdir -p "$JENKINS_AGENT_WORKDIR" && cd "$JENKINS_AGENT_WORKDIR" || exit 1
  printf '%s' "$JENKINS_SECRET" > .secret
  until get "\${JENKINS_URL}jnlpJars/agent.jar" agent.jar.part && mv agent.jar.part agent.jar; do sleep 2; done
  while :; do
    java -jar agent.jar -url "$JENKINS_URL" -name "$JENKINS_AGENT_NAME" -secret @.secret -workDir "$JENKINS_AGENT_WORKDIR" -webSocket
    sleep 2
  done
}
# So that the serial log of the VM shows why an agent does not connect.
log=/dev/console
[ -w "$log" ] || log=/etc/jenkins-agent.log
agent < /dev/null > "$log" 2>&1 &
`;
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
