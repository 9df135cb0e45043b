#include "textflag.h"

TEXT ·garbled(SB), NOSPLIT, $0
	BYTE $0x06 // PUSH ES, gone since 64-bit mode
	RET

TEXT ·endless(SB), NOSPLIT, $0
	XORL AX, AX
	NOP
