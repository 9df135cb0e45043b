#include "textflag.h"

TEXT ·Entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ SP, BX
	LEAQ ·block(SB), DX
	MOVQ DX, ·local(SB)
	LEAQ ·local+8(SB), SI
	MOVL $0x1002, DI // ARCH_SET_FS
	MOVL $158, AX    // arch_prctl
	SYSCALL
	SUBQ $32, SP
	ANDQ $~15, SP
	MOVQ BX, 0(SP)   // the argument of start
	MOVQ BX, 16(SP)
	CALL ·start(SB)
	MOVQ 16(SP), SP
	JMP  _rt0_amd64_linux(SB)
