#include "textflag.h"

// func short(state uint32, b []byte) uint32
TEXT ·short(SB), NOSPLIT, $0-36
	MOVL  state+0(FP), AX
	MOVQ  b_base+8(FP), SI
	MOVQ  b_len+16(FP), CX
	TESTQ $4, SI
	JEQ   words
	CMPQ  CX, $4
	JLT   tail
	CRC32L (SI), AX
	ADDQ  $4, SI
	SUBQ  $4, CX

words:
	SUBQ $8, CX
	JLT  rest

word:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JGE    word

rest:
	ADDQ $8, CX

tail:
	TESTQ  $4, CX
	JEQ    two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	TESTQ  $2, CX
	JEQ    one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	TESTQ  $1, CX
	JEQ    done
	CRC32B (SI), AX

done:
	MOVL AX, ret+32(FP)
	RET
