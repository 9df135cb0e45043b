package engines

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// testDockerfile builds the project's Dockerfile. In the place of the official image of
// Go stands one that is given the Go and the modules of this machine.
func (p *podman) testDockerfile(t *testing.T) {
	need(t, "buildah", "buildah")
	// This version of buildah wants even the stage that names BUILDPLATFORM to be of the
	// target's architecture, so there is a stand-in of each; what runs in it is native.
	for arch, tag := range map[string]string{"amd64": "1.26", "arm64": "arm64"} {
		p.must(t, "podman", "import", "--arch", arch, "--change", "ENV PATH=/usr/local/go/bin:/usr/bin:/bin", "--change", "ENV GOTOOLCHAIN=local",
			"--change", "ENV GOPROXY=off", "--change", "ENV GOFLAGS=", "--change", "ENV GOMODCACHE=/modules", "--change", "ENV GOCACHE=/cache",
			p.path("base.tar"), "docker.io/library/golang:"+tag)
	}

	build := func(t *testing.T, arch, tag string, more ...string) []byte {
		args := append([]string{
			"buildah", "bud", "--pull-never", "--isolation", "chroot", "--network", "host", "--platform", "linux/" + arch,
			"--volume", goEnv(t, "GOROOT") + ":/usr/local/go:ro", "--volume", goEnv(t, "GOMODCACHE") + ":/modules:ro", "--volume", goEnv(t, "GOCACHE") + ":/cache",
			"--build-arg", "COMMIT=" + testCommit, "--ignorefile", repository + "/.dockerignore", "-t", tag, "-f", repository + "/Dockerfile",
		}, more...)
		p.must(t, append(args, repository)...)
		container := p.must(t, "buildah", "from", "--pull-never", tag)
		defer p.must(t, "buildah", "rm", container)
		root := p.must(t, "buildah", "mount", container)
		if got := p.must(t, "find", root, "-mindepth", "1", "-printf", "%P %m\n"); !strings.HasPrefix(got, "fdinit 755") || strings.Contains(got, "src") {
			t.Errorf("the image holds:\n%s", got)
		}
		binary := p.path("built-" + arch)
		p.must(t, "cp", root+"/fdinit", binary)
		content, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}

	t.Run("amd64", func(t *testing.T) {
		built := build(t, "amd64", imageFdinit)
		here := p.path("here")
		if err := goBuild(repository, here, "./cmd/fdinit", linkerFlags(testCommit)); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(here); err != nil || !bytes.Equal(content, built) {
			t.Errorf("a build in the image differs from one outside: %v", err)
		}
		if got := p.must(t, "podman", "inspect", "--format", "{{.Config.User}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Architecture}}", imageFdinit); got != "65532:65532 [/fdinit] [--help] amd64" {
			t.Errorf("the image is configured as %s", got)
		}
		if o := p.podman(t, imageFdinit, "--version"); o.status != 0 || !strings.HasSuffix(o.stdout, "git."+testCommit+"\n") {
			t.Errorf("%s", o)
		}
	})

	t.Run("arm64", func(t *testing.T) {
		file, err := elf.NewFile(bytes.NewReader(build(t, "arm64", "localhost/fdinit-arm64", "--build-arg", "GO_VERSION=arm64")))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != elf.EM_AARCH64 {
			t.Errorf("built for %v", file.Machine)
		}
		for _, prog := range file.Progs {
			if prog.Type == elf.PT_INTERP {
				t.Error("not static")
			}
		}
		if got := p.must(t, "podman", "inspect", "--format", "{{.Architecture}}", "localhost/fdinit-arm64"); got != "arm64" {
			t.Errorf("the image is for %s", got)
		}
	})
}

// The Dockerfile, the Makefile and these tests have to build the same thing.
func TestBuildFlags(t *testing.T) {
	need(t, "make", "make")
	cmd := exec.Command("make", "-n", "build", "COMMIT="+testCommit)
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	makefile := strings.Join(words(strings.ReplaceAll(string(out), "\\\n", " ")), " ")
	if want := "-trimpath -buildvcs=false -ldflags='" + linkerFlags(testCommit) + "'"; !strings.Contains(makefile, want) || !strings.Contains(makefile, " GOAMD64=v1 ") {
		t.Errorf("want %s in %s", want, makefile)
	}
	dockerfile := strings.Join(words(strings.ReplaceAll(readFile(t, repository+"/Dockerfile"), "\\\n", " ")), " ")
	if want := `GOAMD64=v1 go build -trimpath -buildvcs=false -ldflags="` + linkerFlags("${COMMIT}") + `"`; !strings.Contains(dockerfile, want) {
		t.Errorf("want %s in the Dockerfile", want)
	}
}
