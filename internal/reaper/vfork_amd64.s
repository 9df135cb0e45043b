#include "textflag.h"

#define SYS_clone 56
#define CLONE_VM_VFORK_SIGCHLD 0x4111 // CLONE_VM 0x100 | CLONE_VFORK 0x4000 | SIGCHLD 17

// func vfork(s *Supervisor) int
//
// The child goes on below this frame, which holds our return address, so it overwrites
// nothing that the parent still needs.
TEXT ·vfork(SB),NOSPLIT,$8-16
	MOVQ $SYS_clone, AX
	MOVQ $CLONE_VM_VFORK_SIGCHLD, DI
	XORL SI, SI                        // no stack of its own
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	SYSCALL
	TESTQ AX, AX
	JEQ  inchild
	MOVQ AX, ret+8(FP)
	RET
inchild:
	MOVQ s+0(FP), AX
	MOVQ AX, 0(SP)
	CALL ·child(SB)
	INT  $3                            // child does not return
