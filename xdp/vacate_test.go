package xdp

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// hostile is a shared queue whose slots write what they like, and who made it, who
// takes part in it without a slot.
type hostile struct {
	*sharing
	owner *participant
	rx    rxRing
}

func newHostile(t *testing.T) *hostile {
	const slots, frames, rxDepth = 2, 100, 16 // 100: the last word of a map has bits to spare
	s := newSharing(t, 7, slots, 32, rxDepth, frames)
	done, fill := s.done, s.fill
	h := &hostile{sharing: s, owner: newParticipant(s.slotTable, livenessFile{-1}, slots, &done, &fill)}
	h.rx.indices, _, _ = memoryRing(7)
	h.rx.mask, h.rx.descs = rxDepth-1, make([]fabric.Desc, rxDepth)
	return h
}

// vacate is what Queue.Vacate does with the memory of a slot.
func (h *hostile) vacate(slot int) {
	g := h.owner.slotTable
	g.markReceived(&h.rx, g.held[slot])
	h.owner.giveAll(g.heldBy(slot), g.held[slot])
}

// A ring of which every entry looks as if it were written already takes root's agent one try to
// see through, and not one for each frame that a rank says it holds.
func TestVacate_tornRing(t *testing.T) {
	h := newHostile(t)
	g, fill := h.slotTable, h.owner.fills[0]
	for i := range uint32(len(fill.addrs)) {
		at := *fill.shared + i
		fill.addrs[at&fill.mask] = fill.lap(at)
	}
	for i := range g.held[0] {
		g.held[0][i] = ^uint64(0)
	}
	h.vacate(0)
	if left := len(g.heldBy(0)); left != g.frames-1 {
		t.Errorf("%d frames of %d are held still: want all but the one that was tried", left, g.frames)
	}
}

// What ranks can write is no reason for root's agent to panic, to go around for ever, or
// to give the kernel other memory to receive into than what is for that.
func TestVacate_believesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 1))
	word := func(ix *uint32) uint32 {
		switch rng.IntN(4) {
		case 0:
			return rng.Uint32()
		case 1:
			return *ix + rng.Uint32N(40)
		}
		return *ix
	}
	address := func(g *slotTable) mem.Addr {
		if rng.IntN(2) == 0 {
			return mem.Addr(rng.Uint64() >> rng.IntN(64))
		}
		return g.frame(0) + mem.Addr(rng.IntN(2*g.frames*mem.FrameSize))
	}
	for n := range 300 {
		t.Run(strconv.Itoa(n), func(t *testing.T) { // an arena at a time
			h := newHostile(t)
			g := h.slotTable
			for slot := range g.held {
				for i := range g.held[slot] {
					g.held[slot][i] = rng.Uint64() | rng.Uint64()
				}
			}
			for i := range h.rx.descs {
				h.rx.descs[i].Addr = address(g)
			}
			*h.rx.shared, *h.rx.kernel = word(h.rx.shared), word(h.rx.kernel)
			*h.fill.shared, *h.fill.kernel = word(h.fill.shared), word(h.fill.kernel)
			laps := rng.IntN(3)
			ours := map[mem.Addr]bool{}
			for i := range h.fill.addrs {
				switch at := *h.fill.shared + uint32(i); laps {
				case 0: // no entry is free
					h.fill.addrs[at&h.fill.mask] = h.fill.lap(at)
				case 1:
					h.fill.addrs[at&h.fill.mask] = address(g)
				}
			}
			for _, a := range h.fill.addrs {
				ours[a] = true
			}
			h.vacate(0)
			for _, a := range h.fill.addrs {
				if !ours[a] && !g.isFrame(a&^lapMask) {
					t.Fatalf("the kernel was given %#x to receive into; frames are %#x to %#x", a, g.frame(0), g.frame(g.frames))
				}
			}
		})
	}
}

// What a slot has left in good order comes back, all of it and nothing else.
func TestVacate_takesBackWhatThereIs(t *testing.T) {
	h := newHostile(t)
	g := h.slotTable
	had := map[mem.Addr]bool{}
	for n := range 8 { // as if the kernel had taken them
		a := h.fill.addrs[h.taken&h.fill.mask] &^ lapMask
		h.taken++
		had[a] = true
		if n < 5 {
			h.rx.descs[(7+uint32(n))&h.rx.mask].Addr = a + 100
		} else {
			g.mark(g.held[0], a)
		}
	}
	*h.rx.kernel += 5
	*h.fill.kernel = h.taken
	before := *h.fill.shared
	h.vacate(0)
	if n := *h.fill.shared - before; n != 8 {
		t.Fatalf("%d frames came back", n)
	}
	for at := before; at != *h.fill.shared; at++ {
		a := h.fill.addrs[at&h.fill.mask] &^ lapMask
		if !had[a] {
			t.Errorf("%#x came back, which it did not have, or twice", a)
		}
		delete(had, a)
	}
}

// A buffer that no slot can have sent is nobody's.
func TestSlotTable_tellsNobodyOfWhatNobodySent(t *testing.T) {
	h := newHostile(t)
	done := h.done
	for _, a := range []mem.Addr{0, h.slotTable.frame(0), mem.Addr(h.slotTable.parts) - 1, mem.Addr(h.slotTable.size()), 1 << 63, ^mem.Addr(0)} {
		before := make([]uint64, 0, 2)
		for _, b := range h.slotTable.mailboxes {
			before = append(before, *b.cursor)
		}
		h.slotTable.tell(&done, *done.shared, a)
		for i, b := range h.slotTable.mailboxes {
			if a != mem.Addr(h.slotTable.parts)-1 && *b.cursor != before[i] {
				t.Errorf("slot %d was told of %#x", i, a)
			}
		}
	}
}

// Memory that is gone is an error, where the rest of a program goes on.
func TestGuarded(t *testing.T) {
	fd, err := unix.MemfdCreate("xwarp-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 2*mem.FrameSize); err != nil {
		t.Fatal(err)
	}
	a, err := mem.Map(fd, 2*mem.FrameSize)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := unix.Ftruncate(fd, 0); err != nil {
		t.Fatal(err)
	}
	err = guarded(func() error {
		binary.LittleEndian.PutUint64(a.At(mem.FrameSize, 8), 1)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "a process has taken pages out of the memory") {
		t.Errorf("it says %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a mistake of ours went by")
		}
	}()
	_ = guarded(func() error { panic("ours") })
}
