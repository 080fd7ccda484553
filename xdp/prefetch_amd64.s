#include "textflag.h"

// func prefetch(d *Desc)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ d+0(FP), AX
	PREFETCHT0 (AX)
	RET
