#include "textflag.h"

// func moveAcross(dst, src *byte, n int)
TEXT ·moveAcross(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET
