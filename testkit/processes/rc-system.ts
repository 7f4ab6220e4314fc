// A directory that looks enough like DragonFlyBSD to run an rc.d script of ours under sh: stand-ins for rc.subr and daemon(8) that do
// what their manual pages say. There is no such system here: what this cannot show is said where it is used.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Functions of rc.subr(8) that the script uses. */
const RC_SUBR = `
load_rc_config() { [ ! -r "$RC_ROOT/etc/rc.conf" ] || . "$RC_ROOT/etc/rc.conf"; }
warn() { echo "WARNING: $*" >&2; }
err() { shift; echo "ERROR: $*" >&2; exit 1; }
wait_for_pids() { while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; }
run_rc_command() {
	eval "enabled=\\$$rcvar"
	case $1 in start) [ "$enabled" = YES ] || { echo "$name is not enabled"; exit 1; } ;; esac
	for file in $required_files; do [ "$1" != start ] || [ -r "$file" ] || err 1 "$file is not readable."; done
	eval "command=\\$\${1}_cmd"
	$command
}
`;

/**
 * daemon(8): with -u it first becomes the user, and only then writes the pid file given by -P; refuses while the process in that file lives;
 * with -r it starts its program again when that ends; a SIGTERM is passed on, and then it ends and removes the file.
 */
const DAEMON = `#!/bin/sh
restart='' pidfile='' user=''
while :; do
	case $1 in
	-c | -f) shift ;;
	-r) restart=yes; shift ;;
	-P) pidfile=$2; shift 2 ;;
	-u) user=$2; shift 2 ;;
	*) break ;;
	esac
done
if [ -n "$user" ] && [ -z "$DAEMON_DROPPED" ]; then
	DAEMON_DROPPED=yes exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$0" $([ -z "$restart" ] || echo -r) -P "$pidfile" "$@"
fi
if [ -s "$pidfile" ] && kill -0 "$(cat "$pidfile")" 2>/dev/null; then
	echo "daemon: process already running, pid: $(cat "$pidfile")" >&2
	exit 3
fi
: >"$pidfile" || { echo "daemon: ppidfile \`\`$pidfile'': Permission denied" >&2; exit 2; }
[ -n "$DAEMON_FORKED" ] || { DAEMON_FORKED=yes setsid "$0" $([ -z "$restart" ] || echo -r) -P "$pidfile" "$@" & 
	while [ ! -s "$pidfile" ]; do sleep 0.05; done; exit 0; }
echo $$ >"$pidfile"
trap 'kill -TERM $child 2>/dev/null; wait $child; rm -f "$pidfile"; exit 0' TERM
while :; do
	"$@" &
	child=$!
	wait $child
	[ -n "$restart" ] || break
	sleep 0.1
done
`;

type RcSystem = {
  root: string;
  /** Of the script in the test's directory, with its settings. */
  service(command: string): { status: number | null; output: string };
  write(path: string, content: string, mode?: number): string;
};

export function rcSystem(root: string, script: string, settings: Record<string, string>): RcSystem {
  const write = (path: string, content: string, mode = 0o644) => {
    const file = join(root, path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode);
    return file;
  };
  for (const directory of ["var/run", "var/log", "var/db"]) mkdirSync(join(root, directory), { recursive: true });
  // Others have to pass through to what is theirs.
  chmodSync(root, 0o755);
  write("etc/rc.subr", RC_SUBR);
  write("usr/sbin/daemon", DAEMON, 0o755);
  const lines = Object.entries(settings).map(([name, value]) => `${name}="${value}"\n`);
  write("etc/rc.conf", lines.join(""));
  const here = readFileSync(script, "utf8").replaceAll(
    /(?<![\w.$}])\/(etc\/rc[.]subr|usr\/sbin\/daemon|var\/(?:run|log))/g,
    `${root}/$1`,
  );
  const installed = write("usr/local/etc/rc.d/script", here, 0o755);
  return {
    ...{ root, write },
    service(command) {
      const { status, stdout, stderr } = spawnSync("sh", [installed, command], {
        ...{ encoding: "utf8", timeout: 60_000 },
        env: { PATH: process.env["PATH"], RC_ROOT: root, HOLDFAST_WATCHDOG_SECONDS: "1" },
      });
      return { status, output: `${stdout}${stderr}` };
    },
  };
}
