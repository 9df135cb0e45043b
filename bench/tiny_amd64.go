package main

import "encoding/binary"

const elfMachine = 62 // EM_X86_64

var codeTrue = []byte{
	0x31, 0xff, // xor edi, edi
	0xb8, 0xe7, 0, 0, 0, // mov eax, exit_group
	0x0f, 0x05, // syscall
}

// codeStorm makes n orphans, one after the other: the workload's child starts
// a grandchild, and both end. vfork on both levels shares the memory, so that
// making an orphan costs less than reaping it does; no stack is used, hence
// nothing is there to be spoilt by the sharing.
func codeStorm(n int) []byte {
	code := []byte{
		0x41, 0xbc, 0, 0, 0, 0, // mov r12d, n
		0xb8, 0x3a, 0, 0, 0, // 1: mov eax, vfork
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 0x10, // jne 2f
		0xb8, 0x3a, 0, 0, 0, // mov eax, vfork
		0x0f, 0x05, // syscall
		0x31, 0xff, // xor edi, edi
		0xb8, 0xe7, 0, 0, 0, // mov eax, exit_group
		0x0f, 0x05, // syscall
		0x89, 0xc7, // 2: mov edi, eax
		0x31, 0xf6, // xor esi, esi
		0x31, 0xd2, // xor edx, edx
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0xb8, 0x3d, 0, 0, 0, // mov eax, wait4
		0x0f, 0x05, // syscall
		0x41, 0xff, 0xcc, // dec r12d
		0x75, 0xd0, // jne 1b
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 1, 0, 0, 0, // mov edx, 1
		0xb8, 1, 0, 0, 0, // mov eax, write
		0x0f, 0x05, // syscall
		0xb8, 0x22, 0, 0, 0, // 3: mov eax, pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp 3b
	}
	binary.LittleEndian.PutUint32(code[2:], uint32(n))
	return code
}

// codeBlock blocks SIGUSR1, and leaves the set at the top of the stack.
var codeBlock = []byte{
	0x48, 0x83, 0xec, 0x20, // sub rsp, 32
	0x48, 0xc7, 0x04, 0x24, 0, 2, 0, 0, // mov qword [rsp], 1<<(SIGUSR1-1)
	0x31, 0xff, // xor edi, edi (SIG_BLOCK)
	0x48, 0x89, 0xe6, // mov rsi, rsp
	0x31, 0xd2, // xor edx, edx
	0x41, 0xba, 8, 0, 0, 0, // mov r10d, 8
	0xb8, 0x0e, 0, 0, 0, // mov eax, rt_sigprocmask
	0x0f, 0x05, // syscall
}

// codeTell writes the time.
var codeTell = []byte{
	0xbf, 1, 0, 0, 0, // mov edi, CLOCK_MONOTONIC
	0x48, 0x8d, 0x74, 0x24, 8, // lea rsi, [rsp+8]
	0xb8, 0xe4, 0, 0, 0, // mov eax, clock_gettime
	0x0f, 0x05, // syscall
	0xbf, 1, 0, 0, 0, // mov edi, 1
	0x48, 0x8d, 0x74, 0x24, 8, // lea rsi, [rsp+8]
	0xba, 0x10, 0, 0, 0, // mov edx, 16
	0xb8, 1, 0, 0, 0, // mov eax, write
	0x0f, 0x05, // syscall
}

// codeAwait waits for a signal of the set.
var codeAwait = []byte{
	0x48, 0x89, 0xe7, // mov rdi, rsp
	0x31, 0xf6, // xor esi, esi
	0x31, 0xd2, // xor edx, edx
	0x41, 0xba, 8, 0, 0, 0, // mov r10d, 8
	0xb8, 0x80, 0, 0, 0, // mov eax, rt_sigtimedwait
	0x0f, 0x05, // syscall
}

// codeBack goes back over so many bytes, less than 126.
func codeBack(n int) []byte {
	return []byte{0xeb, byte(-n - 2)} // jmp
}

// codeFork runs code in a child; the parent goes on behind it.
func codeFork(code []byte) []byte {
	b := []byte{
		0xb8, 0x39, 0, 0, 0, // mov eax, fork
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x0f, 0x85, // jne behind
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(code)))
	return append(b, code...)
}
