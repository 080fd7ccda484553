#include "textflag.h"

// func prefetchWrite(first *byte, lines int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ lines+8(FP), CX

next:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX)
	ADDQ $64, AX
	DECQ CX
	JGT  next
	RET
