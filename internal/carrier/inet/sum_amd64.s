#include "textflag.h"

// WORDS adds the words of 32 bits of the 32 bytes at AT(SI): those of odd number to ODD, the
// others to EVEN. Y15 is what they are told by.
#define WORDS(AT, X, T, EVEN, ODD) \
	VMOVDQU AT(SI), X;       \
	VPAND   Y15, X, T;       \
	VPSRLQ  $32, X, X;       \
	VPADDQ  T, EVEN, EVEN;   \
	VPADDQ  X, ODD, ODD

// func sumBlocks(b *byte, n int) uint64
TEXT ·sumBlocks(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	VPXOR    Y0, Y0, Y0
	VPXOR    Y1, Y1, Y1
	VPXOR    Y2, Y2, Y2
	VPXOR    Y3, Y3, Y3
	VPCMPEQD Y15, Y15, Y15
	VPSRLQ   $32, Y15, Y15
	PCALIGN  $32

next:
	WORDS(0, Y4, Y5, Y0, Y1)
	WORDS(32, Y6, Y7, Y2, Y3)
	WORDS(64, Y8, Y9, Y0, Y1)
	WORDS(96, Y10, Y11, Y2, Y3)
	ADDQ $128, SI
	DECQ CX
	JNZ  next

	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y3, Y2, Y2
	VPADDQ       Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
