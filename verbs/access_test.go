package verbs

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// memory is one region and one window of it, to be asked for in all ways.
type memory struct {
	pd     *PD
	q      *QP
	all    []byte // with canaries on both sides of the region
	m      *MR
	w      *MW
	window uint64 // where it begins
}

func newMemory(t *testing.T, access, window Access) *memory {
	t.Helper()
	pd := newPD(t, newContext())
	x := &memory{pd: pd, q: newQP(pd), all: bytes.Repeat([]byte{0xc5}, 300), w: newMW(t, pd)}
	var err error
	x.m, err = pd.RegMR(x.all[100:200], access|MWBind)
	ok(t, err)
	ok(t, (&Bind{MW: x.w, MR: x.m, Offset: 20, Length: 30, Access: window}).do(x.q))
	x.window = x.m.Addr() + 20
	return x
}

// Every combination of granted and needed rights, on a region and a window.
func TestGrant_rights(t *testing.T) {
	rights := []Access{RemoteWrite, RemoteRead, RemoteAtomic}
	for has := range Access(8) {
		granted := Access(0)
		for i, r := range rights {
			if has>>i&1 != 0 {
				granted |= r
			}
		}
		x := newMemory(t, LocalWrite|granted, 0)
		y := newMemory(t, LocalWrite, granted)
		for _, need := range rights {
			want := granted&need != 0
			if b, cause := x.q.grant(x.m.RKey(), x.m.Addr(), 100, need); (b != nil) != want || !want && cause != rdmap.AccessRights {
				t.Errorf("region with %b, %b needed: %v, %v", granted, need, b != nil, cause)
			}
			if b, cause := y.q.grant(y.w.RKey(), y.window, 30, need); (b != nil) != want || !want && cause != rdmap.AccessRights {
				t.Errorf("window with %b, %b needed: %v, %v", granted, need, b != nil, cause)
			}
			if b, _ := y.q.grant(y.m.RKey(), y.m.Addr(), 1, need); b != nil {
				t.Error("the rights of a window opened its region")
			}
		}
	}
}

func TestGrant_ranges(t *testing.T) {
	x := newMemory(t, LocalWrite|RemoteRead|RemoteWrite, RemoteRead|RemoteWrite)
	a := x.m.Addr()
	for _, c := range []struct {
		name  string
		key   uint32
		addr  uint64
		n     uint32
		cause iwarp.Cause // of a Read
		write iwarp.Cause // of a Write
	}{
		{name: "all", key: x.m.RKey(), addr: a, n: 100},
		{name: "first", key: x.m.RKey(), addr: a, n: 1},
		{name: "last", key: x.m.RKey(), addr: a + 99, n: 1},
		{"one before", x.m.RKey(), a - 1, 1, rdmap.BaseBounds, ddp.BaseBounds},
		{"begins before", x.m.RKey(), a - 1, 2, rdmap.BaseBounds, ddp.BaseBounds},
		{"one behind", x.m.RKey(), a + 100, 1, rdmap.BaseBounds, ddp.BaseBounds},
		{"ends behind", x.m.RKey(), a + 99, 2, rdmap.BaseBounds, ddp.BaseBounds},
		{"all and one", x.m.RKey(), a, 101, rdmap.BaseBounds, ddp.BaseBounds},
		{"the longest", x.m.RKey(), a, ^uint32(0), rdmap.BaseBounds, ddp.BaseBounds},
		{"last address", x.m.RKey(), ^uint64(0), 1, rdmap.BaseBounds, ddp.BaseBounds},
		{"wraps", x.m.RKey(), ^uint64(0), 2, rdmap.TOWrap, ddp.TOWrap},
		{"wraps into it", x.m.RKey(), ^uint64(7), ^uint32(0), rdmap.TOWrap, ddp.TOWrap},
		{name: "window", key: x.w.RKey(), addr: x.window, n: 30},
		{"before the window", x.w.RKey(), x.window - 1, 1, rdmap.BaseBounds, ddp.BaseBounds},
		{"behind the window", x.w.RKey(), x.window + 30, 1, rdmap.BaseBounds, ddp.BaseBounds},
		{"no key", 0, a, 1, rdmap.InvalidSTag, ddp.InvalidSTag},
		{"guessed key", x.m.RKey() + 1, a, 1, rdmap.InvalidSTag, ddp.InvalidSTag},
	} {
		granted := c.cause == 0
		for need, want := range map[Access]iwarp.Cause{RemoteRead: c.cause, RemoteWrite: c.write} {
			b, cause := x.q.grant(c.key, c.addr, c.n, need)
			if cause != want || granted != (b != nil) || granted && (len(b) != int(c.n) || cap(b) != len(b)) {
				t.Errorf("%s: %d bytes, %v; want %v", c.name, len(b), cause, want)
			}
		}
	}
}

// What is granted is the memory itself, at the right place.
func TestGrant_place(t *testing.T) {
	x := newMemory(t, LocalWrite|RemoteWrite, RemoteWrite)
	b, _ := x.q.grant(x.m.RKey(), x.m.Addr()+7, 2, RemoteWrite)
	copy(b, "ab")
	b, _ = x.q.grant(x.w.RKey(), x.window+29, 1, RemoteWrite)
	copy(b, "c")
	want := bytes.Repeat([]byte{0xc5}, 300)
	copy(want[107:], "ab")
	copy(want[149:], "c")
	if !bytes.Equal(x.all, want) {
		t.Error("other bytes changed")
	}
}

// No bytes need no key.
func TestGrant_nothing(t *testing.T) {
	x := newMemory(t, 0, 0)
	for _, key := range []uint32{0, 12345, x.m.RKey(), x.w.RKey()} {
		if b, _ := x.q.grant(key, 99, 0, RemoteWrite); b == nil || len(b) != 0 {
			t.Errorf("key %#x: an access of no bytes was refused", key)
		}
	}
}

// The domain of the queue pair decides, and for a window the queue pair.
func TestGrant_association(t *testing.T) {
	x := newMemory(t, LocalWrite|RemoteRead|RemoteWrite, RemoteRead|RemoteWrite)
	sibling, stranger := newQP(x.pd), newQP(newPD(t, x.pd.ctx))
	for _, c := range []struct {
		name  string
		q     *QP
		key   uint32
		want  bool
		cause iwarp.Cause
	}{
		{"region, sibling", sibling, x.m.RKey(), true, iwarp.Cause(0)},
		{"region, stranger", stranger, x.m.RKey(), false, rdmap.NotAssociated},
		{"window, sibling", sibling, x.w.RKey(), false, rdmap.NotAssociated},
		{"window, stranger", stranger, x.w.RKey(), false, rdmap.NotAssociated},
	} {
		b, cause := c.q.grant(c.key, x.window, 5, RemoteRead)
		if (b != nil) != c.want || cause != c.cause {
			t.Errorf("%s: %v, %v", c.name, b != nil, cause)
		}
		if _, cause := c.q.grant(c.key, x.window, 5, RemoteWrite); !c.want && cause != ddp.NotAssociated {
			t.Errorf("%s: a Write is told %v", c.name, cause)
		}
	}
}

func TestInvalidate(t *testing.T) {
	for _, c := range []struct {
		name     string
		access   Access // of the region
		unbind   bool   // first
		stranger bool   // of another domain asks
		sibling  bool   // another queue pair asks
		window   bool   // what is to end
		remote   bool
		cause    iwarp.Cause
	}{
		{name: "region, here", unbind: true},
		{name: "region, peer", unbind: true, remote: true, cause: rdmap.CannotInvalidate},
		{name: "region, peer that may", access: RemoteInvalidate, unbind: true, remote: true},
		{name: "region with a window, here", cause: rdmap.OperationInvalidate},
		{name: "region with a window, peer that may", access: RemoteInvalidate, remote: true, cause: rdmap.OperationInvalidate},
		{name: "region, stranger", access: RemoteInvalidate, unbind: true, stranger: true, remote: true, cause: rdmap.CannotInvalidate},
		{name: "window, here", window: true},
		{name: "window, peer", window: true, remote: true},
		{name: "window, sibling", window: true, sibling: true, cause: rdmap.CannotInvalidate},
		{name: "window, stranger", window: true, stranger: true, cause: rdmap.CannotInvalidate},
		{name: "window that is not bound", window: true, unbind: true, cause: rdmap.OperationInvalidate},
	} {
		x := newMemory(t, c.access|LocalWrite|RemoteRead, RemoteRead)
		q, key := x.q, x.m.RKey()
		if c.window {
			key = x.w.RKey()
		}
		if c.unbind {
			x.w.unbind()
		}
		if c.sibling {
			q = newQP(x.pd)
		}
		if c.stranger {
			q = newQP(newPD(t, x.pd.ctx))
		}
		want := c.cause == 0
		if cause, ok := q.invalidate(key, c.remote); ok != want || cause != c.cause {
			t.Errorf("%s: %v, %v; want %v", c.name, ok, cause, c.cause)
		}
		b, _ := x.q.grant(key, x.window, 1, RemoteRead)
		if valid := b != nil; valid != (!want && !(c.window && c.unbind)) {
			t.Errorf("%s: afterwards the key is valid: %v", c.name, valid)
		}
		if want && !c.window {
			if _, err := x.pd.ctx.resolve(x.pd, &SGE{Addr: x.window, Length: 1, LKey: key}, 0); err == nil {
				t.Errorf("%s: the local key is still valid", c.name)
			}
			ok(t, x.m.Dereg()) // is still due
		}
	}
}

// Every cause that is sent means something to the requester.
func TestStatusOf(t *testing.T) {
	for c, want := range map[iwarp.Cause]Status{
		rdmap.InvalidSTag: RemAccessErr, rdmap.BaseBounds: RemAccessErr, rdmap.AccessRights: RemAccessErr, rdmap.NotAssociated: RemAccessErr,
		rdmap.TOWrap: RemAccessErr, rdmap.CannotInvalidate: RemAccessErr, rdmap.OperationInvalidate: RemAccessErr, rdmap.ProtectionUnspecified: RemAccessErr,
		ddp.InvalidSTag: RemAccessErr, ddp.BaseBounds: RemAccessErr, ddp.NotAssociated: RemAccessErr, ddp.TOWrap: RemAccessErr,
		rdmap.UnexpectedOpcode: RemInvReqErr, rdmap.InvalidVersion: RemInvReqErr, rdmap.StreamCatastrophic: RemInvReqErr,
		ddp.InvalidQN: RemInvReqErr, ddp.InvalidMO: RemInvReqErr, ddp.MessageTooLong: RemInvReqErr, ddp.NoBuffer: RemInvReqErr,
		iwarp.LLPCatastrophic: RemOpErr, rdmap.LocalCatastrophic: RemOpErr, ddp.LocalCatastrophic: RemOpErr,
	} {
		if got := statusOf(c); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

func TestAllocs_grant(t *testing.T) {
	x := newMemory(t, LocalWrite|RemoteWrite, 0)
	key, addr := x.m.RKey(), x.m.Addr()
	if n := testing.AllocsPerRun(1000, func() {
		if b, _ := x.q.grant(key, addr, 8, RemoteWrite); b == nil {
			t.Fatal("refused")
		}
		if b, _ := x.q.grant(key+1, addr, 8, RemoteWrite); b != nil {
			t.Fatal("granted")
		}
		if b, _ := x.q.grant(key, addr, 0, RemoteWrite); b == nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGrant(b *testing.B) {
	pd := newPD(b, newContext())
	q, m := newQP(pd), newMR(b, pd, 4096, LocalWrite|RemoteWrite)
	for b.Loop() {
		if x, _ := q.grant(m.key, m.addr+64, 1024, RemoteWrite); x == nil {
			b.Fatal("refused")
		}
	}
}
