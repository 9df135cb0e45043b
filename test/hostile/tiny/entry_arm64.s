#include "textflag.h"

#define SYS_clone 220
#define SYS_wait4 260
#define SYS_exit_group 94
#define SIGCHLD 17

// func Entry()
TEXT ·Entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVD $3, R19
again:
	MOVD $SIGCHLD, R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $SYS_clone, R8
	SVC
	CMP  $0, R0
	BLT  failed
	BEQ  child
	MOVD $-1, R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $SYS_wait4, R8
	SVC
	SUBS $1, R19
	BNE  again
	MOVD $3, R0
	JMP  exit
child: // leaves an orphan
	MOVD $SIGCHLD, R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $SYS_clone, R8
	SVC
	MOVD $0, R0
	JMP  exit
failed:
	MOVD $4, R0
exit:
	MOVD $SYS_exit_group, R8
	SVC
	BRK
