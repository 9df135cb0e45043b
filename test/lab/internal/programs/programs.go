// Package programs knows real programs that suffer from a high limit on open files, and
// how to see that one of them has done what it was started for. It measures them.
//
// It knows nothing of where it runs: in one of the lab's machines with a real limit, or
// on the host with a pretended one.
package programs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/container"
)

// Program is a real program in a situation in which it suffers.
type Program struct {
	Name string
	// Package has it; Suites are where it has been seen to suffer, or all if nil.
	Package string
	Suites  []string
	// Suffers says how, and Reads from which of the limits.
	Suffers Symptom
	Reads   string
	// Argv starts it.
	Argv []string
	// Setup makes what it needs under a root directory that it may spoil.
	Setup func(root string) error
	// Port that it listens on when it is ready; otherwise it is ready when it exits.
	Port int
}

// Symptom is how a program suffers.
type Symptom string

const (
	Time   Symptom = "time"
	Memory Symptom = "memory"
	Both   Symptom = "time and memory"
)

// Ready is where programs that run in the background leave a sign.
const ready = "/run/ready"

// inBackground is a script that starts something and waits for its sign of life. As
// process 1 it also keeps the namespace alive meanwhile.
func inBackground(start, sign string) []string {
	return []string{"/bin/sh", "-c", start + "; until test -s " + sign + "; do sleep 0.05; done"}
}

// The columns of the report's table.
const (
	ColumnVersion = "package"
	ColumnReads   = "goes by"
	ColumnSane    = "1024"
	ColumnProbe   = "2^22"
	ColumnBefore  = "2^30"
	ColumnWhole   = "to its end"
	ColumnAuto    = "2^30, fdinit"
	ColumnAsked   = "2^30, fdinit --nofile=1024:1024"
)

// Columns is their order.
var Columns = []string{ColumnVersion, ColumnReads, ColumnSane, ColumnProbe, ColumnBefore, ColumnWhole, ColumnAuto, ColumnAsked}

// All are the programs, in the order of the report.
var All = []Program{
	{
		Name: "lsof -p 1", Package: "lsof", Suffers: Time, Reads: "soft",
		Argv: []string{"/usr/bin/lsof", "-p", "1"},
	},
	{
		Name: "python2.7 subprocess, close_fds=True", Package: "python2.7", Suites: []string{"bullseye"}, Suffers: Time, Reads: "soft",
		Argv: []string{"/usr/bin/python2.7", "-S", "-c", "import subprocess; subprocess.check_call(['/bin/true'], close_fds=True)"},
	},
	{
		Name: "fakeroot ls", Package: "fakeroot", Suffers: Time, Reads: "soft",
		// Not "fakeroot true": that does not wait for its daemon.
		Argv: []string{"/usr/bin/fakeroot-sysv", "ls", "-ld", "/"},
	},
	{
		Name: "start-stop-daemon --background", Package: "dpkg", Suffers: Time, Reads: "soft",
		Argv: inBackground("/sbin/start-stop-daemon --start --background --pidfile /run/lab.pid --startas /bin/sh -- -c 'echo ready >"+ready+"; sleep 1000'", ready),
	},
	{
		Name: "rsyslogd", Package: "rsyslog", Suffers: Time, Reads: "soft",
		Argv:  inBackground("/usr/sbin/rsyslogd -f /etc/lab-rsyslog.conf -i "+ready, ready),
		Setup: file("/etc/lab-rsyslog.conf", "module(load=\"imuxsock\" SysSock.Name=\"/run/lab-log\")\n*.* /dev/null\n"),
	},
	{
		Name: "postsrsd", Package: "postsrsd", Suffers: Time, Reads: "soft",
		Argv:  []string{"/usr/sbin/postsrsd", "-s", "/etc/lab-secret", "-d", "example.org", "-l", "127.0.0.1", "-f", "10001", "-r", "10002"},
		Setup: file("/etc/lab-secret", "not a secret\n"),
		Port:  10002,
	},
	{
		Name: "xinetd", Package: "xinetd", Suffers: Both, Reads: "hard",
		Argv: []string{"/usr/sbin/xinetd", "-dontfork", "-f", "/etc/lab-xinetd.conf"},
		Setup: file("/etc/lab-xinetd.conf", `service lab
{
	type = UNLISTED
	socket_type = stream
	protocol = tcp
	port = 10003
	wait = no
	user = root
	server = /bin/true
}
`),
		Port: 10003,
	},
	{
		Name: "rpm --root without /proc, one scriptlet", Package: "rpm", Suffers: Time, Reads: "hard",
		Argv:  []string{"/usr/bin/rpm", "--root", "/srv/lab-root", "--dbpath", "/var/lib/rpm", "--install", "--nodeps", "--nosignature", "/srv/lab.rpm"},
		Setup: rpmRoot,
	},
	{
		Name: "slapd", Package: "slapd", Suffers: Both, Reads: "soft",
		Argv:  []string{"/usr/sbin/slapd", "-d", "0", "-h", "ldap://127.0.0.1:10004", "-f", "/etc/lab-slapd.conf"},
		Setup: file("/etc/lab-slapd.conf", "pidfile /run/lab-slapd.pid\n"),
		Port:  10004,
	},
	{
		Name: "haproxy without maxconn", Package: "haproxy", Suffers: Memory, Reads: "hard",
		Argv: []string{"/usr/sbin/haproxy", "-db", "-f", "/etc/lab-haproxy.cfg"},
		Setup: file("/etc/lab-haproxy.cfg", `defaults
	mode http
	timeout connect 5s
	timeout client 5s
	timeout server 5s
frontend lab
	bind 127.0.0.1:10005
	default_backend none
backend none
`),
		Port: 10005,
	},
	{
		Name: "squid -N", Package: "squid", Suffers: Both, Reads: "soft",
		Argv: []string{"/usr/sbin/squid", "-N", "-d", "1", "-f", "/etc/lab-squid.conf"},
		Setup: file("/etc/lab-squid.conf", `http_port 127.0.0.1:10006
http_access deny all
visible_hostname lab
pid_filename none
access_log none
cache_log /dev/null
cache_store_log none
netdb_filename none
coredump_dir /tmp
pinger_enable off
cache_mem 8 MB
shutdown_lifetime 1 second
`),
		Port: 10006,
	},
}

// Build prepares what takes tools that only a whole system has: called once for a tree
// of packages, with a way to run a command in it.
func Build(root string, run func(argv ...string) error) error {
	const spec = `Name: lab
Version: 1
Release: 1
Summary: A package with a scriptlet
License: none
BuildArch: noarch
%description
A package with a scriptlet.
%post
exit 0
%files
`
	if err := file("/srv/lab.spec", spec)(root); err != nil {
		return err
	}
	if err := run("/usr/bin/rpmbuild", "-bb", "--define", "_rpmdir /srv", "--define", "_rpmfilename lab.rpm",
		"--define", "_topdir /tmp", "--define", "_build_id_links none", "--define", "__os_install_post %{nil}", "/srv/lab.spec"); err != nil {
		return err
	}
	// The root that rpm installs into has a shell and nothing else, above all no /proc.
	shell, err := os.ReadFile(filepath.Join(root, "bin/busybox"))
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(root, "srv/lab-root/bin"), 0o755),
		os.WriteFile(filepath.Join(root, "srv/lab-root/bin/sh"), shell, 0o755),
	)
}

// rpmRoot takes back what an installation before has done.
func rpmRoot(root string) error {
	return os.RemoveAll(filepath.Join(root, "srv/lab-root/var"))
}

func file(name, content string) func(string) error {
	return func(root string) error {
		name := filepath.Join(root, name)
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644))
	}
}

// Result is what was measured.
type Result struct {
	// Took is the time from the start until the program was ready, or until it was cut
	// off or died.
	Took time.Duration
	// CPU is what it used until then, in all its processes.
	CPU time.Duration
	// Resident and Virtual are bytes, of all its processes together, at the most. Only
	// for programs that stay.
	Resident, Virtual int64
	// CutOff is whether it was not ready when the bound came.
	CutOff bool
	// Died says how, if it ended otherwise than it should.
	Died string
}

// Run runs a program until it is ready and ends it. The spec is of the container that
// it runs in; under, if not nil, is the init and its options.
func (p *Program) Run(spec container.Spec, root string, under []string, bound time.Duration) (r Result, err error) {
	os.Remove(filepath.Join(root, ready))
	os.Remove(filepath.Join(root, "/run/lab.pid"))
	if p.Setup != nil {
		if err := p.Setup(root); err != nil {
			return r, err
		}
	}
	spec.Argv = p.Argv
	if under != nil {
		spec.Argv = append(append([]string{}, under...), "--")
		spec.Argv = append(spec.Argv, p.Argv...)
	}
	c, err := container.Start(&spec, nil)
	if err != nil {
		return r, err
	}
	defer c.Kill()
	deadline := time.After(bound)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.Port != 0 && listens(c.PID(), p.Port) {
			r.Took = c.Since(container.Now())
			r.sample(c.PID(), under != nil)
			return r, nil
		}
		select {
		case <-c.Ended():
			u := c.Usage()
			r.Took, r.CPU = u.Wall, u.CPU
			if p.Port != 0 || u.Status != 0 {
				r.Died = fmt.Sprintf("exit status %d", u.Status)
				if u.Status > 128 {
					r.Died = fmt.Sprintf("killed by signal %d", u.Status-128)
				}
				if said := reason(c.Output()); said != "" {
					r.Died += ": " + said
				}
			}
			return r, nil
		case <-deadline:
			r.Took, r.CutOff = c.Since(container.Now()), true
			r.sample(c.PID(), under != nil)
			return r, nil
		case <-tick.C:
		}
	}
}

// complaint looks like the line of a program's output that says what is wrong.
var complaint = regexp.MustCompile(`(?i)alert|fatal|memory|alloc|assert`)

// reason is that line, or the last one, not too long.
func reason(output string) string {
	lines := strings.Split(output, "\n")
	said := lines[len(lines)-1]
	for _, line := range lines {
		if complaint.MatchString(line) {
			said = line
			break
		}
	}
	said = strings.TrimSpace(said)
	if len(said) > 160 {
		said = said[:160] + "…"
	}
	return said
}

// sample reads memory and time of a container's processes, without its init.
func (r *Result) sample(pid int, hasInit bool) {
	for i, pid := range container.Tree(pid) {
		if i == 0 && hasInit {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has just ended
		}
		r.Resident += kilobytes(status, "VmHWM:")
		r.Virtual += kilobytes(status, "VmPeak:")
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// After the name, which may contain anything: state is field 3, utime 14.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, f := range fields[11:13] {
			ticks, _ := strconv.ParseInt(f, 10, 64)
			r.CPU += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
}

func kilobytes(status []byte, field string) int64 {
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, field); found {
			n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// listens tells whether somebody listens on a TCP port in a process's network.
func listens(pid, port int) bool {
	const stateListen = "0A"
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == stateListen {
				return true
			}
		}
	}
	return false
}

// In tells whether a program belongs to a suite's list.
func (p *Program) In(suite string) bool {
	if p.Suites == nil {
		return true
	}
	for _, s := range p.Suites {
		if s == suite {
			return true
		}
	}
	return false
}

// Packages are what a suite's tree must have for its programs.
func Packages(suite string) []string {
	names := []string{"busybox-static", "dash", "coreutils", "util-linux", "sed", "grep"}
	for _, p := range All {
		if p.In(suite) {
			names = append(names, p.Package)
		}
	}
	return names
}

// Describe is a result in few words.
func (p *Program) Describe(r Result) string {
	text := Seconds(r.Took)
	switch {
	case r.Died != "":
		text = r.Died + " after " + text
	case r.CutOff:
		text = "cut off after " + text
	}
	if p.Suffers != Time && r.Resident > 0 {
		text += fmt.Sprintf(", %d MB resident, %d MB virtual", r.Resident>>20, r.Virtual>>20)
	}
	return text
}

// Seconds has about three significant digits.
func Seconds(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", d.Seconds()*1e6)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}
