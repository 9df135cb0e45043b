package execfail

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// capabilityNames are the names of the capabilities by number (linux/capability.h, up
// to Linux 5.9).
var capabilityNames = [...]string{
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
	"linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
	"sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
	"sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
	"mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf",
	"checkpoint_restore",
}

func capabilityName(n int) string {
	if n < len(capabilityNames) {
		return "cap_" + capabilityNames[n]
	}
	return "capability " + strconv.Itoa(n)
}

// fileCaps are the file capabilities of the attribute security.capability.
type fileCaps struct {
	permitted, inheritable uint64
	effective              bool
}

// parseCapabilities decodes struct vfs_cap_data of any of its three versions.
func parseCapabilities(b []byte) (fileCaps, bool) {
	var c fileCaps
	if len(b) < 12 {
		return c, false
	}
	word := func(i int) uint64 {
		b := b[4*i:]
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
	}
	magic := word(0)
	words := 2
	switch magic >> 24 {
	case 1:
		words = 1
	case 2, 3:
	default:
		return c, false
	}
	if len(b) < 4+words*8 {
		return c, false
	}
	for i := range words {
		c.permitted |= word(1+2*i) << (32 * i)
		c.inheritable |= word(2+2*i) << (32 * i)
	}
	c.effective = magic&1 != 0
	return c, true
}

// fileCapabilities tells whether the program has file capabilities that make the kernel
// refuse it: with the effective bit set, all that the file permits must be obtained, or
// exec fails with EPERM (bprm_caps_from_vfs_caps in security/commoncap.c). It is how
// ping and the like fail in a container with few capabilities, even for root.
func (p *probe) fileCapabilities() (cause, remedy string) {
	// The capabilities of the last program count: those of a script's interpreter,
	// never those of the script.
	var program link
	for _, l := range p.chain {
		if !l.loader {
			program = l
		}
	}
	if program.path == "" {
		return "", ""
	}
	buf := make([]byte, 64)
	n, err := unix.Getxattr(program.path, "security.capability", buf)
	if err != nil {
		return "", ""
	}
	caps, ok := parseCapabilities(buf[:n])
	if !ok || !caps.effective {
		return "", ""
	}
	var fs unix.Statfs_t
	if unix.Statfs(program.path, &fs) != nil || uint64(fs.Flags)&unix.ST_NOSUID != 0 {
		return "", "" // ignored there
	}
	own, _ := ownCapabilities()
	list := ""
	for n := range 64 {
		bit := uint64(1) << n
		if caps.permitted&bit == 0 || caps.inheritable&own.inheritable&bit != 0 {
			continue
		}
		// EINVAL: this kernel does not know the capability, and ignores it in files
		// too.
		if in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0); err == nil && in == 0 {
			if list != "" {
				list += ", "
			}
			list += capabilityName(n)
		}
	}
	if list == "" {
		return "", ""
	}
	return program.subject + " has file capabilities that this container does not allow (" + list + ")",
		"allow them or remove them from the file with setcap -r"
}

// capabilitySets are two of the capability sets of this thread.
type capabilitySets struct{ effective, inheritable uint64 }

func ownCapabilities() (capabilitySets, bool) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return capabilitySets{}, false
	}
	return capabilitySets{
		effective:   uint64(data[0].Effective) | uint64(data[1].Effective)<<32,
		inheritable: uint64(data[0].Inheritable) | uint64(data[1].Inheritable)<<32,
	}, true
}
