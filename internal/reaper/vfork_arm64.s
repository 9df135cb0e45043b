#include "textflag.h"

#define SYS_clone 220
#define CLONE_VM_VFORK_SIGCHLD 0x4111 // CLONE_VM 0x100 | CLONE_VFORK 0x4000 | SIGCHLD 17

// func vfork(s *Supervisor) int
//
// The child goes on below this frame, which holds our return address, so it overwrites
// nothing that the parent still needs.
TEXT ·vfork(SB),NOSPLIT,$16-16
	MOVD $CLONE_VM_VFORK_SIGCHLD, R0
	MOVD $0, R1                        // no stack of its own
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $SYS_clone, R8
	SVC
	CBZ  R0, inchild
	MOVD R0, ret+8(FP)
	RET
inchild:
	MOVD s+0(FP), R0
	MOVD R0, 8(RSP)
	CALL ·child(SB)
	BRK                                // child does not return
