#include "textflag.h"

// BEGIN and END are a function of (in, inout *byte, blocks int), around what it does to the 128
// bytes at SI and DI.
#define BEGIN \
	MOVQ in+0(FP), SI;        \
	MOVQ inout+8(FP), DI;     \
	MOVQ blocks+16(FP), CX;   \
	PCALIGN $32;              \
next:

#define END \
	ADDQ    $128, SI;         \
	ADDQ    $128, DI;         \
	DECQ    CX;               \
	JNZ     next;             \
	VZEROUPPER;               \
	RET

// LOOP does inout = inout OP in.
#define LOOP(OP) \
	BEGIN;                    \
	VMOVDQU 0(DI), Y0;        \
	VMOVDQU 32(DI), Y1;       \
	VMOVDQU 64(DI), Y2;       \
	VMOVDQU 96(DI), Y3;       \
	OP      0(SI), Y0, Y0;    \
	OP      32(SI), Y1, Y1;   \
	OP      64(SI), Y2, Y2;   \
	OP      96(SI), Y3, Y3;   \
	VMOVDQU Y0, 0(DI);        \
	VMOVDQU Y1, 32(DI);       \
	VMOVDQU Y2, 64(DI);       \
	VMOVDQU Y3, 96(DI);       \
	END

// ORDER does OP, a maximum or minimum of floats, to 32 bytes. Of zeros the instruction takes the
// second one, whatever its sign: both ways MERGE to the right one. All bits set, where one of
// the two is no number (comparison 3), are NaN.
#define ORDER(AT, OP, MERGE, CMP) \
	VMOVDQU AT(DI), Y0;       \
	VMOVDQU AT(SI), Y1;       \
	OP      Y1, Y0, Y2;       \
	OP      Y0, Y1, Y3;       \
	CMP     $3, Y0, Y1, Y4;   \
	MERGE   Y2, Y3, Y2;       \
	VPOR    Y4, Y2, Y2;       \
	VMOVDQU Y2, AT(DI)

#define ORDERLOOP(OP, MERGE, CMP) \
	BEGIN;                     \
	ORDER(0, OP, MERGE, CMP);  \
	ORDER(32, OP, MERGE, CMP); \
	ORDER(64, OP, MERGE, CMP); \
	ORDER(96, OP, MERGE, CMP); \
	END

TEXT ·addFloat32(SB), NOSPLIT, $0-24
	LOOP(VADDPS)

TEXT ·addFloat64(SB), NOSPLIT, $0-24
	LOOP(VADDPD)

TEXT ·add8(SB), NOSPLIT, $0-24
	LOOP(VPADDB)

TEXT ·add16(SB), NOSPLIT, $0-24
	LOOP(VPADDW)

TEXT ·add32(SB), NOSPLIT, $0-24
	LOOP(VPADDD)

TEXT ·add64(SB), NOSPLIT, $0-24
	LOOP(VPADDQ)

TEXT ·mulFloat32(SB), NOSPLIT, $0-24
	LOOP(VMULPS)

TEXT ·mulFloat64(SB), NOSPLIT, $0-24
	LOOP(VMULPD)

TEXT ·mul16(SB), NOSPLIT, $0-24
	LOOP(VPMULLW)

TEXT ·mul32(SB), NOSPLIT, $0-24
	LOOP(VPMULLD)

TEXT ·maxInt8(SB), NOSPLIT, $0-24
	LOOP(VPMAXSB)

TEXT ·maxInt16(SB), NOSPLIT, $0-24
	LOOP(VPMAXSW)

TEXT ·maxInt32(SB), NOSPLIT, $0-24
	LOOP(VPMAXSD)

TEXT ·maxUint8(SB), NOSPLIT, $0-24
	LOOP(VPMAXUB)

TEXT ·maxUint16(SB), NOSPLIT, $0-24
	LOOP(VPMAXUW)

TEXT ·maxUint32(SB), NOSPLIT, $0-24
	LOOP(VPMAXUD)

TEXT ·minInt8(SB), NOSPLIT, $0-24
	LOOP(VPMINSB)

TEXT ·minInt16(SB), NOSPLIT, $0-24
	LOOP(VPMINSW)

TEXT ·minInt32(SB), NOSPLIT, $0-24
	LOOP(VPMINSD)

TEXT ·minUint8(SB), NOSPLIT, $0-24
	LOOP(VPMINUB)

TEXT ·minUint16(SB), NOSPLIT, $0-24
	LOOP(VPMINUW)

TEXT ·minUint32(SB), NOSPLIT, $0-24
	LOOP(VPMINUD)

TEXT ·and(SB), NOSPLIT, $0-24
	LOOP(VPAND)

TEXT ·or(SB), NOSPLIT, $0-24
	LOOP(VPOR)

TEXT ·xor(SB), NOSPLIT, $0-24
	LOOP(VPXOR)

TEXT ·maxFloat32(SB), NOSPLIT, $0-24
	ORDERLOOP(VMAXPS, VPAND, VCMPPS)

TEXT ·maxFloat64(SB), NOSPLIT, $0-24
	ORDERLOOP(VMAXPD, VPAND, VCMPPD)

TEXT ·minFloat32(SB), NOSPLIT, $0-24
	ORDERLOOP(VMINPS, VPOR, VCMPPS)

TEXT ·minFloat64(SB), NOSPLIT, $0-24
	ORDERLOOP(VMINPD, VPOR, VCMPPD)
