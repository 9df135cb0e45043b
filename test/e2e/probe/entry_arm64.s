#include "textflag.h"

// The kernel starts here with argc at 0(RSP). A zeroed g has a stack guard of
// zero, with which no stack check ever fires.
TEXT ·Entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVD $·zeroG(SB), g
	MOVD RSP, R0
	SUB  $32, RSP
	MOVD R0, 8(RSP)
	CALL ·run(SB)
	BRK  $0            // run does not return
