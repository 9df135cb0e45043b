package main

import "encoding/binary"

const elfMachine = 183 // EM_AARCH64

var codeTrue = words(
	0xaa1f03e0, // mov x0, xzr
	0xd2800bc8, // mov x8, exit_group
	0xd4000001, // svc 0
)

// codeStorm makes n orphans, one after the other: the workload's child starts
// a grandchild, and both end. CLONE_VM|CLONE_VFORK on both levels shares the
// memory, so that making an orphan costs less than reaping it does; no stack
// is used, hence nothing is there to be spoilt by the sharing.
func codeStorm(n int) []byte {
	count := uint32(n)
	return words(
		0x52800013|(count&0xffff)<<5, // movz w19, low half of n
		0x72a00013|(count>>16)<<5,    // movk w19, high half of n
		0xd2882220,                   // 1: mov x0, CLONE_VM|CLONE_VFORK|SIGCHLD
		0xaa1f03e1,                   // mov x1, xzr
		0xaa1f03e2,                   // mov x2, xzr
		0xaa1f03e3,                   // mov x3, xzr
		0xaa1f03e4,                   // mov x4, xzr
		0xd2801b88,                   // mov x8, clone
		0xd4000001,                   // svc 0
		0xb50000e0,                   // cbnz x0, 2f
		0xd2882220,                   // mov x0, CLONE_VM|CLONE_VFORK|SIGCHLD
		0xaa1f03e1,                   // mov x1, xzr
		0xd4000001,                   // svc 0
		0xaa1f03e0,                   // mov x0, xzr
		0xd2800bc8,                   // mov x8, exit_group
		0xd4000001,                   // svc 0
		0xaa1f03e1,                   // 2: mov x1, xzr
		0xaa1f03e2,                   // mov x2, xzr
		0xaa1f03e3,                   // mov x3, xzr
		0xd2802088,                   // mov x8, wait4
		0xd4000001,                   // svc 0
		0xd1000673,                   // sub x19, x19, 1
		0xb5fffd93,                   // cbnz x19, 1b
		0xb24003e0,                   // mov x0, 1
		0x910003e1,                   // mov x1, sp
		0xb24003e2,                   // mov x2, 1
		0xb27a03e8,                   // mov x8, write
		0xd4000001,                   // svc 0
		0xaa1f03e0,                   // 3: mov x0, xzr
		0xaa1f03e1,                   // mov x1, xzr
		0xaa1f03e2,                   // mov x2, xzr
		0xaa1f03e3,                   // mov x3, xzr
		0xaa1f03e4,                   // mov x4, xzr
		0xd2800928,                   // mov x8, ppoll (nothing, for ever)
		0xd4000001,                   // svc 0
		0x17fffff9,                   // b 3b
	)
}

// codeBlock blocks SIGUSR1, and leaves the set at the top of the stack.
var codeBlock = words(
	0xd10083ff, // sub sp, sp, 32
	0xb27703e9, // mov x9, 1<<(SIGUSR1-1)
	0xf90003e9, // str x9, [sp]
	0xaa1f03e0, // mov x0, xzr (SIG_BLOCK)
	0x910003e1, // mov x1, sp
	0xaa1f03e2, // mov x2, xzr
	0xb27d03e3, // mov x3, 8
	0xd28010e8, // mov x8, rt_sigprocmask
	0xd4000001, // svc 0
)

// codeTell writes the time.
var codeTell = words(
	0xb24003e0, // mov x0, CLOCK_MONOTONIC
	0x910023e1, // add x1, sp, 8
	0xd2800e28, // mov x8, clock_gettime
	0xd4000001, // svc 0
	0xb24003e0, // mov x0, 1
	0x910023e1, // add x1, sp, 8
	0xb27c03e2, // mov x2, 16
	0xb27a03e8, // mov x8, write
	0xd4000001, // svc 0
)

// codeAwait waits for a signal of the set.
var codeAwait = words(
	0x910003e0, // mov x0, sp
	0xaa1f03e1, // mov x1, xzr
	0xaa1f03e2, // mov x2, xzr
	0xb27d03e3, // mov x3, 8
	0xd2801128, // mov x8, rt_sigtimedwait
	0xd4000001, // svc 0
)

// codeBack goes back over so many bytes.
func codeBack(n int) []byte {
	return words(0x14000000 | uint32(-n/4)&0x03ffffff) // b
}

// codeFork runs code in a child; the parent goes on behind it.
func codeFork(code []byte) []byte {
	skip := uint32(len(code)/4 + 1)
	b := words(
		0xd2800220,         // mov x0, SIGCHLD
		0xaa1f03e1,         // mov x1, xzr
		0xaa1f03e2,         // mov x2, xzr
		0xaa1f03e3,         // mov x3, xzr
		0xaa1f03e4,         // mov x4, xzr
		0xd2801b88,         // mov x8, clone
		0xd4000001,         // svc 0
		0xb5000000|skip<<5, // cbnz x0, behind
	)
	return append(b, code...)
}

func words(ws ...uint32) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
