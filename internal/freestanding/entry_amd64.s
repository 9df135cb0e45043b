#include "go_asm.h"
#include "textflag.h"

#define SYS_arch_prctl 158
#define ARCH_SET_FS 0x1002
#define SYS_write 1
#define SYS_exit_group 231
#define SYS_exit 60

#define REFUSAL_SIZE 49
DATA refusal<>+0(SB)/8, $"fdinit: "
DATA refusal<>+8(SB)/8, $"does a s"
DATA refusal<>+16(SB)/8, $"eccomp f"
DATA refusal<>+24(SB)/8, $"ilter re"
DATA refusal<>+32(SB)/8, $"fuse arc"
DATA refusal<>+40(SB)/8, $"h_prctl?"
DATA refusal<>+48(SB)/1, $"\n"
GLOBL refusal<>(SB), RODATA|NOPTR, $REFUSAL_SIZE

// func Entry()
//
// ABI0 functions reach ABIInternal ones through wrappers that load g from FS:-8.
TEXT ·Entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ SP, R12                       // kept by the kernel
	LEAQ ·process+state_blankG(SB), AX
	LEAQ ·process+state_threadLocal(SB), SI
	MOVQ AX, 0(SI)
	ADDQ $8, SI                        // FS, so that the slot is at FS:-8
	MOVQ $ARCH_SET_FS, DI
	MOVQ $SYS_arch_prctl, AX
	SYSCALL
	TESTQ AX, AX
	JNE  refused
	MOVQ R12, ·process+state_initialStack(SB)
	ANDQ $~15, SP
	SUBQ $16, SP
	MOVQ R12, 0(SP)
	CALL ·start(SB)
	MOVQ ·process+state_initialStack(SB), SP
	JMP  _rt0_amd64_linux(SB)
refused:
	// By a seccomp filter. Not even a Go function can be called now.
	MOVQ $2, DI
	LEAQ refusal<>(SB), SI
	MOVQ $REFUSAL_SIZE, DX
	MOVQ $SYS_write, AX
	SYSCALL
	MOVQ $125, DI
	MOVQ $SYS_exit_group, AX
	SYSCALL
	MOVQ $125, DI
	MOVQ $SYS_exit, AX
	SYSCALL
	INT  $3
