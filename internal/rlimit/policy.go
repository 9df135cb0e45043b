package rlimit

import "github.com/fdinit/fdinit/internal/sys"

const (
	// Pathological is the highest sane RLIMIT_NOFILE; whatever is above it came from a
	// service manager's "infinity" (1073741816 and 2147483584 are seen in the field).
	// 2^20 is the kernel's default for fs.nr_open, what Docker and Podman gave
	// containers for years, and the cap of Kubernetes' coming field (KEP-5758).
	Pathological = 1 << 20

	// SaneSoft replaces a pathological soft limit. A loop over it costs milliseconds;
	// servers that check what they have are content (Elasticsearch wants 65535). 1024
	// broke a whole fleet (amazon-eks-ami issue 1551).
	SaneSoft = 1 << 16

	// SaneHard replaces a pathological hard limit, because xinetd, haproxy, cupsd, rpm
	// without /proc and old JVMs size by the hard one, and JVM, Go and Node raise the
	// soft limit to it and hand that to their children.
	SaneHard = Pathological
)

// Auto is the default policy for RLIMIT_NOFILE: soft and hard are judged each by
// itself, and what is sane is not touched. changed is false if all is.
func Auto(present sys.Rlimit) (wanted sys.Rlimit, changed bool) {
	wanted = present
	if wanted.Soft > Pathological {
		wanted.Soft = SaneSoft
	}
	if wanted.Hard > Pathological {
		wanted.Hard = SaneHard
	}
	return wanted, wanted != present
}
