#include "textflag.h"

// The kernel starts here with argc at 0(SP). Calls from assembly to Go go
// through a wrapper that fetches g from FS:-8, so FS must point just behind a
// word which holds the address of some zeroed memory, large enough for a g:
// its stack guard is then zero and no stack check ever fires.
TEXT ·Entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ SP, BX
	LEAQ ·zeroG(SB), AX
	MOVQ AX, ·threadLocal(SB)
	LEAQ ·threadLocal+8(SB), SI
	MOVL $0x1002, DI // ARCH_SET_FS
	MOVL $158, AX    // arch_prctl
	SYSCALL
	ANDQ $~15, SP
	SUBQ $16, SP
	MOVQ BX, 0(SP)
	CALL ·run(SB)
	MOVL $0, AX
	MOVL AX, (AX)    // run does not return
