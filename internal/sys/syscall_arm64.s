#include "textflag.h"

// func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r uintptr)
TEXT ·syscall6(SB),NOSPLIT,$0-64
	MOVD trap+0(FP), R8
	MOVD a1+8(FP), R0
	MOVD a2+16(FP), R1
	MOVD a3+24(FP), R2
	MOVD a4+32(FP), R3
	MOVD a5+40(FP), R4
	MOVD a6+48(FP), R5
	SVC
	MOVD R0, r+56(FP)
	RET
