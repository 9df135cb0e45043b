#include "textflag.h"

TEXT ·Entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVD $·block(SB), g
	MOVD RSP, R0
	SUB  $48, RSP
	MOVD R0, 8(RSP)  // the argument of start
	MOVD R0, 32(RSP)
	CALL ·start(SB)
	MOVD 32(RSP), R0
	MOVD R0, RSP
	JMP  _rt0_arm64_linux(SB)
