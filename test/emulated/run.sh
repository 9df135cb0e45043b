#!/bin/sh
# Run a fdinit of another architecture under qemu-user, which turns vfork into fork.
# Usage: run.sh QEMU FDINIT
set -eu
qemu=$1 fdinit=$2
tried=0

# expect STATUS TEXT COMMAND...: the command ends with that status and says that text.
expect() {
	status=$1 text=$2
	shift 2
	got=0
	output=$("$@" 2>&1) || got=$?
	tried=$((tried + 1))
	case $output in
	*"$text"*) said=yes ;;
	*) said=no ;;
	esac
	if [ "$got" != "$status" ] || [ $said = no ]; then
		echo "not as expected: $*"
		echo "  status $got, wanted $status; output, wanted \"$text\":"
		echo "$output"
		exit 1
	fi
}

expect 0 'fdinit version' "$qemu" "$fdinit" --version
expect 0 'Usage: fdinit' "$qemu" "$fdinit" --help
expect 125 'unknown option "-x"' "$qemu" "$fdinit" -x
expect 0 'started true' "$qemu" "$fdinit" --log=info true
expect 3 '' "$qemu" "$fdinit" sh -c 'exit 3'
expect 126 '' "$qemu" "$fdinit" sh -c 'exit 126'
expect 127 '' "$qemu" "$fdinit" sh -c 'exit 127'
expect 137 '' "$qemu" "$fdinit" sh -c 'kill -KILL $$'
expect 143 '' "$qemu" "$fdinit" sh -c 'kill -TERM $PPID; exec sleep 600'
expect 127 'not found in PATH' "$qemu" "$fdinit" no-such-command
expect 127 'exec /no/such/file: no such file or directory' "$qemu" "$fdinit" /no/such/file
expect 126 'exec /etc/passwd: permission denied' "$qemu" "$fdinit" /etc/passwd
expect 125 'setting RLIMIT_NOFILE' "$qemu" "$fdinit" --rlimit=nofile=5:4000000000 true
# Not in a pipeline, of which the shell may still hold an end.
expect 0 'leaked: 0  1  2
.' "$qemu" "$fdinit" sh -c 'printf "leaked: "; ls -x /proc/$$/fd; echo .' 9</dev/null
expect 0 '' "$qemu" "$fdinit" sh -c 'for i in 1 2 3 4 5 6 7 8; do (true &) ; done; sleep 0.2'
echo "$tried passed, 0 failed"
