#!/bin/sh
# Show fdinit's main job to somebody who has never seen it. Usage: demo.sh PATH/TO/fdinit
set -eu
fdinit=$(realpath "$1")

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; }

# A workload that tells what it was given.
report='printf "open files:      "; ls -x /proc/$$/fd
echo "limit (soft):    $(ulimit -Sn)"
echo "limit (hard):    $(ulimit -Hn)"'

# The environment: leaked descriptors, and as high a limit as this machine gives.
exec 7</etc/passwd 8</etc 9>/dev/null
ulimit -Sn "$(ulimit -Hn)" 2>/dev/null || true
if [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -gt 1048576 ]; then
	option=
	why="The limit is pathological, so fdinit lowers it by itself."
else
	option=--nofile=1024
	why="This machine allows no more than $(ulimit -Hn) files. Above 1048576 fdinit lowers the
limit by itself; here it is asked to."
fi

say "1. A container as engines often start it: leaked descriptors (7, 8, 9 and any of yours), an oversized limit"
run "sh -c REPORT"
sh -c "$report"

say "2. The same through fdinit"
echo "$why"
run "fdinit $option sh -c REPORT"
"$fdinit" $option sh -c "$report"

say "3. As PID 1: orphans are reaped and signals arrive"
orphans='for i in 1 2 3; do sh -c "sleep 0.1 & exit" ; done; sleep 1
echo "PID 1 is:        $(cat /proc/1/comm)"
echo "zombies:         $(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z ")"
echo "memory of PID 1: $(awk "/VmRSS/ {print \$2, \$3}" /proc/1/status), $(awk "/Threads/ {print \$2}" /proc/1/status) thread"
trap "echo \"caught TERM, exit 7\"; exit 7" TERM; kill -TERM 1; sleep 600 & wait'
namespace="unshare --pid --fork --mount-proc"
[ "$(id -u)" = 0 ] || namespace="unshare --user --map-root-user --pid --fork --mount-proc"
if ! $namespace true 2>/dev/null; then
	echo "skipped: this machine allows no PID namespace (try as root)"
	exit 0
fi
run "$namespace fdinit sh -c ORPHANS"
status=0
$namespace "$fdinit" sh -c "$orphans" || status=$?
echo "exit status:     $status"
[ "$status" = 7 ]
