#include "textflag.h"

// func dirty(first *byte, n int)
TEXT ·dirty(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX // the end

next:
	MOVB (AX), DX
	MOVB DX, (AX)
	ADDQ $64, AX
	ANDQ $-64, AX // of the first line the first byte, or one behind it, is as good as any
	CMPQ AX, CX
	JCS  next
	RET
