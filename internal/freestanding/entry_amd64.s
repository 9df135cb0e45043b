#include "go_asm.h"
#include "textflag.h"

#define SYS_arch_prctl 158
#define ARCH_SET_FS 0x1002

// func Entry()
//
// ABI0 functions reach ABIInternal ones through wrappers that load g from FS:-8.
TEXT ·Entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ SP, R12                       // kept by the kernel
	LEAQ ·process+state_blankG(SB), AX
	LEAQ ·process+state_threadLocal(SB), SI
	MOVQ AX, 0(SI)
	ADDQ $8, SI                        // FS, so that the slot is at FS:-8
	MOVQ $ARCH_SET_FS, DI
	MOVQ $SYS_arch_prctl, AX
	SYSCALL
	MOVQ R12, ·process+state_initialStack(SB)
	ANDQ $~15, SP
	SUBQ $16, SP
	MOVQ R12, 0(SP)
	CALL ·start(SB)
	MOVQ ·process+state_initialStack(SB), SP
	JMP  _rt0_amd64_linux(SB)
