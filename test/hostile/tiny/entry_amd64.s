#include "textflag.h"

#define SYS_clone 56
#define SYS_wait4 61
#define SYS_exit_group 231
#define SIGCHLD 17

// func Entry()
TEXT ·Entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ $3, R12
again:
	MOVQ $SIGCHLD, DI
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	TESTQ AX, AX
	JLT  failed
	JEQ  child
	MOVQ $-1, DI
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	MOVQ $SYS_wait4, AX
	SYSCALL
	DECQ R12
	JNE  again
	MOVQ $3, DI
	JMP  exit
child: // leaves an orphan
	MOVQ $SIGCHLD, DI
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	XORL DI, DI
	JMP  exit
failed:
	MOVQ $4, DI
exit:
	MOVQ $SYS_exit_group, AX
	SYSCALL
	INT  $3
