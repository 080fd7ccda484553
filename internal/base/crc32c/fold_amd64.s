#include "textflag.h"

// STEP carries Z by the distance of the factors in K and adds what is added.
// It spoils T.
#define STEP(K, Z, T, added) \
	VPCLMULQDQ $0x00, K, Z, T \
	VPCLMULQDQ $0x11, K, Z, Z \
	VPTERNLOGQ $0x96, added, T, Z // the exclusive or of all three

// STEP16 is STEP for registers of 16 bytes.
#define STEP16(K, X, T, added) \
	VPCLMULQDQ $0x00, K, X, T \
	VPCLMULQDQ $0x11, K, X, X \
	VPXOR T, X, X             \
	VPXOR added, X, X

// FACTORS loads entry i of the table to every 16 bytes of Z8.
#define FACTORS(i) VBROADCASTI32X4 (16*i)(DX), Z8

// func fold(state uint32, b []byte) uint32
TEXT ·fold(SB), NOSPLIT, $0-36
	MOVL state+0(FP), BX
	MOVQ b_base+8(FP), AX
	MOVQ b_len+16(FP), CX
	LEAQ ·folds(SB), DX

	// The state belongs to the first four bytes.
	VMOVD     BX, X4
	VPXORQ    (AX), Z4, Z0
	VMOVDQU64 64(AX), Z1
	VMOVDQU64 128(AX), Z2
	VMOVDQU64 192(AX), Z3
	FACTORS(0)
	JMP       next

round:
	STEP(Z8, Z0, Z4, (AX))
	STEP(Z8, Z1, Z5, 64(AX))
	STEP(Z8, Z2, Z6, 128(AX))
	STEP(Z8, Z3, Z7, 192(AX))

next:
	ADDQ $256, AX
	SUBQ $256, CX
	CMPQ CX, $256
	JGE  round

	// Gather Z0 to Z3 in Z2.
	FACTORS(1)
	STEP(Z8, Z0, Z4, Z3)
	FACTORS(2)
	STEP(Z8, Z1, Z4, Z0)
	FACTORS(3)
	STEP(Z8, Z2, Z4, Z1)

	JMP  nextBlock

block:
	STEP(Z8, Z2, Z4, (AX))
	ADDQ $64, AX

nextBlock:
	SUBQ $64, CX
	JGE  block

	// Gather Z2 in X6.
	VEXTRACTI32X4 $1, Z2, X5
	VEXTRACTI32X4 $2, Z2, X6
	VEXTRACTI32X4 $3, Z2, X7
	VMOVDQU       64(DX), X8
	STEP16(X8, X2, X4, X7)
	VMOVDQU       80(DX), X8
	STEP16(X8, X5, X4, X2)
	VMOVDQU       96(DX), X8
	STEP16(X8, X6, X4, X5)

	// What is left is a message of 16 bytes with the same remainder.
	VMOVQ      X6, AX
	VPEXTRQ    $1, X6, BX
	VZEROUPPER
	XORL       CX, CX
	CRC32Q     AX, CX
	CRC32Q     BX, CX
	MOVL       CX, ret+32(FP)
	RET
