#include "go_asm.h"
#include "textflag.h"

// func Entry()
TEXT ·Entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVD $·process+state_blankG(SB), g
	MOVD RSP, R0
	MOVD R0, ·process+state_initialStack(SB)
	SUB  $32, RSP
	MOVD R0, 8(RSP)
	CALL ·start(SB)
	MOVD ·process+state_initialStack(SB), R0
	MOVD R0, RSP
	JMP  _rt0_arm64_linux(SB)
