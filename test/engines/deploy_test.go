package engines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The names that the files in deploy/ use.
const (
	imageFdinit = "registry.example.com/fdinit:v1"
	imageApp    = "registry.example.com/app:v1"
	imageBoth   = "registry.example.com/app-with-fdinit:v1"
)

// app is what those files run: it tells what it got, and ends when it is told to.
const app = `#!/bin/sh
trap 'echo stopping; exit 0' TERM
echo "init: $(tr '\0' ' ' </proc/1/cmdline)"
echo "uid: $(id -u)"
echo "core: $(ulimit -Sc)"
if touch /new 2>/dev/null; then echo "root: writable"; else echo "root: read-only"; fi
echo "serving $*"
while :; do sleep 0.1; done
`

// appArchive is an image of the application alone.
func appArchive(t *testing.T, s *sandbox) string {
	t.Helper()
	writeFile(t, s.path("base/usr/bin/app"), app)
	if err := os.Chmod(s.path("base/usr/bin/app"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.must(t, "tar", "-C", s.path("base"), "-cf", s.path("app.tar"), ".")
	return s.path("app.tar")
}

// fdinitArchive is the file system of fdinit's own image.
func fdinitArchive(t *testing.T, s *sandbox) string {
	t.Helper()
	installed(t, fdinit, s.path("scratch/fdinit"))
	s.must(t, "tar", "-C", s.path("scratch"), "-cf", s.path("fdinit.tar"), ".")
	return s.path("fdinit.tar")
}

func TestDeployDocker(t *testing.T) {
	// The file as it is: the daemon refuses keys that it does not know.
	d := startDockerd(t, "--config-file", deployed("docker/daemon.json"))
	d.must(t, "docker", "import", appArchive(t, d.sandbox), imageApp)
	d.must(t, "docker", "import", fdinitArchive(t, d.sandbox), imageFdinit)

	context := d.path("context")
	writeFile(t, context+"/Dockerfile", readFile(t, deployed("docker/Dockerfile")))
	// The daemon's own init would be process 1 of a RUN step, which has no way to say no.
	o := d.run(t, nil, "docker", "build", "--network", "none", "--ulimit", "nofile=2000:3000", "-t", imageBoth, context)
	if o.status != 0 || !strings.Contains(o.stdout, "this step may open 2000 files\n") {
		t.Fatal(o)
	}
	if got := d.must(t, "docker", "inspect", "--format", "{{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.Shell}}", imageBoth); got != "[/fdinit --] [/usr/bin/app --serve] [/fdinit -- /bin/sh -c]" {
		t.Errorf("the image is configured as %s", got)
	}

	t.Run("daemon.json", func(t *testing.T) {
		t.Parallel()
		o := d.docker(t, base, "sh", "-c", `tr '\0' ' ' </proc/1/cmdline`)
		if o.status != 0 || !strings.HasPrefix(o.stdout, "/sbin/docker-init -- sh -c ") {
			t.Errorf("%s", o)
		}
	})

	t.Run("Dockerfile", func(t *testing.T) {
		t.Parallel()
		id := d.detached(t, "serving --serve", "--init=false", imageBoth)
		if got := d.must(t, "docker", "logs", id); !strings.HasPrefix(got, "init: /fdinit -- /usr/bin/app --serve \n") {
			t.Errorf("%s", got)
		}
		d.must(t, "docker", "stop", "-t", stopPatience, id)
		if got := d.must(t, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); got != "0" {
			t.Errorf("status %s", got)
		}
	})

	t.Run("compose.yaml", func(t *testing.T) {
		t.Parallel()
		need(t, "docker-compose", "docker-compose")
		// The daemon here has no bridge. Two inits in a row are for no use, so the other
		// services ask for none.
		override := d.path("override.yaml")
		writeFile(t, override, `services:
  by-engine: {network_mode: none}
  in-image: {network_mode: none, init: false}
  from-host: {network_mode: none, init: false}
`)
		compose := func(args ...string) string {
			return d.must(t, append([]string{"docker-compose", "-f", deployed("docker/compose.yaml"), "-f", override}, args...)...)
		}
		compose("up", "-d")
		for service, init := range map[string]string{
			"by-engine": "/sbin/docker-init -- /usr/bin/app --serve ",
			"in-image":  "/fdinit --rlimit=core=0 -- /usr/bin/app --serve ",
			"from-host": "/fdinit --rlimit=core=0 -- /usr/bin/app --serve ",
		} {
			id := compose("ps", "-q", service)
			d.logged(t, id, "serving --serve")
			if got := d.must(t, "docker", "logs", id); !strings.HasPrefix(got, "init: "+init+"\n") || !strings.Contains(got, "\ncore: 0\n") {
				t.Errorf("%s: %s", service, got)
			}
		}
		ids := words(compose("ps", "-q"))
		compose("stop", "-t", stopPatience)
		for _, id := range ids {
			if got := d.must(t, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); got != "0" {
				t.Errorf("status %s after a stop", got)
			}
		}
		compose("down")
	})
}

func TestDeployPodman(t *testing.T) {
	p := newPodman(t)
	p.must(t, "podman", "import", appArchive(t, p.sandbox), imageApp)

	t.Run("Dockerfile of fdinit", func(t *testing.T) { p.testDockerfile(t) })
	if t.Failed() {
		return
	}
	t.Run("Dockerfile of an application", func(t *testing.T) {
		writeFile(t, p.path("context/Dockerfile"), readFile(t, deployed("docker/Dockerfile")))
		// Docker's format, because the other one has no place for SHELL.
		o := p.run(t, nil, "podman", "build", "--pull=never", "--isolation", "chroot", "--network", "host", "--format", "docker",
			"-t", imageBoth, p.path("context"))
		if o.status != 0 || !regexp.MustCompile(`(?m)^this step may open [0-9]+ files$`).MatchString(o.stdout) {
			t.Fatal(o)
		}
	})

	for _, file := range podFiles(t) {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			pod := parsePod(t, file)
			if len(pod.Spec.InitContainers) > 0 {
				// podman 4.3 takes the pod's policy, which is Always where nothing is said, for the
				// init containers' as well, and starts them again and again.
				changed := p.path(name)
				writeFile(t, changed, readFile(t, file)+"  restartPolicy: OnFailure\n")
				file = changed
			}
			p.must(t, "podman", "play", "kube", "--network", "none", file)
			defer p.must(t, "podman", "play", "kube", "--down", file)
			container := pod.Name + "-" + pod.Spec.Containers[0].Name
			p.serving(t, container, strings.Join(append(slices.Clone(pod.Spec.Containers[0].Command), pod.Spec.Containers[0].Args...), " "))
			p.must(t, "podman", "pod", "stop", "-t", stopPatience, pod.Name)
			if got := p.must(t, "podman", "inspect", "--format", "{{.State.ExitCode}}", container); got != "0" {
				t.Errorf("status %s after a stop", got)
			}
		})
	}

	t.Run("quadlet", func(t *testing.T) {
		args := quadlet(t, deployed("podman/app.container"))
		p.must(t, append([]string{"podman", "run", "-d", "--network", "none", "--name", "quadlet"}, args...)...)
		p.serving(t, "quadlet", "/run/podman-init -- /usr/bin/app --serve")
		p.must(t, "podman", "stop", "-t", stopPatience, "quadlet")
		if got := p.must(t, "podman", "inspect", "--format", "{{.State.ExitCode}}", "quadlet"); got != "0" {
			t.Errorf("status %s after a stop", got)
		}
	})
}

// serving waits until the application runs, and looks at what it printed.
func (p *podman) serving(t *testing.T, container, init string) {
	t.Helper()
	var log string
	eventually(t, container+" serves", func() bool {
		o := p.run(t, nil, "podman", "logs", container)
		log = o.stdout + o.stderr
		return strings.Contains(log, "serving --serve\n")
	})
	want := fmt.Sprintf("init: %s \nuid: 65532\ncore: 0\nroot: read-only\nserving --serve\n", init)
	if log != want {
		t.Errorf("%s prints\n%s\nwant\n%s", container, log, want)
	}
}

// quadlet does what podman's generator for systemd does since 4.4, which is newer than
// some distributions have: it makes arguments of podman run from a unit. A key that is
// not in podman-systemd.unit(5) is an error, as it is there.
func quadlet(t *testing.T, file string) []string {
	t.Helper()
	translate := map[string]func(string) []string{
		"RunInit":         func(v string) []string { return []string{"--init=" + boolean(t, v)} },
		"ReadOnly":        func(v string) []string { return []string{"--read-only=" + boolean(t, v)} },
		"Environment":     func(v string) []string { return []string{"--env", v} },
		"DropCapability":  func(v string) []string { return []string{"--cap-drop", v} },
		"NoNewPrivileges": func(v string) []string { return []string{"--security-opt", "no-new-privileges:" + boolean(t, v)} },
	}
	var flags []string
	values := map[string]string{}
	section := ""
	for line := range strings.Lines(readFile(t, file)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("not a key and a value: %q", line)
		}
		switch make := translate[key]; {
		case section != "[Container]":
		case make != nil:
			flags = append(flags, make(value)...)
		case slices.Contains([]string{"Image", "Exec", "User", "Group"}, key):
			values[key] = value
		default:
			t.Fatalf("unknown key %q", key)
		}
	}
	flags = append(flags, "--user", values["User"]+":"+values["Group"], values["Image"])
	return append(flags, words(values["Exec"])...)
}

func boolean(t *testing.T, text string) string {
	t.Helper()
	value, ok := map[string]string{"yes": "true", "true": "true", "no": "false", "false": "false"}[text]
	if !ok {
		t.Fatalf("neither yes nor no: %q", text)
	}
	return value
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
