package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// table is a hash table with open addressing. Slots are numbered over all ranks; a slot
// is two elements of the window of its rank: the key, 0 while it has none, and its count.
type table struct {
	w     *mpi.Win
	part  []uint64 // the slots of this rank
	slots uint64   // of one rank
	ranks uint64
	found []uint64 // what the slots of a batch had in them
	one   []uint64 // 1
}

// newTable makes a table with room for so many keys, which is not more than half full then.
func newTable(comm *mpi.Comm, keys int) (*table, error) {
	t := &table{ranks: uint64(comm.Size()), one: []uint64{1}}
	t.slots = uint64(2*keys)/t.ranks + 1
	var err error
	if t.w, t.part, err = mpi.WinAllocate[uint64](comm, int(2*t.slots), nil); err != nil {
		return nil, err
	}
	// One epoch for all there is to do: targets take no part in it.
	return t, t.w.LockAll(mpi.ModeNoCheck)
}

func (t *table) close() error { return errors.Join(t.w.UnlockAll(), t.w.Free()) }

// home returns the slot in which the search for a key begins.
func (t *table) home(key uint64) uint64 {
	key *= 0x9e3779b97f4a7c15
	return (key ^ key>>32) % (t.slots * t.ranks)
}

// at returns the rank that has a slot, and the displacement of its key there.
func (t *table) at(slot uint64) (rank, disp int) {
	return int(slot / t.slots), int(slot % t.slots * 2)
}

// add counts each of the keys once more. The searches of all of them go on together, a
// slot of each at a time, so that the time to the other ranks and back passes once for a
// batch and not for each key.
func (t *table) add(keys []uint64) error {
	if len(keys) > len(t.found) {
		t.found = make([]uint64, len(keys))
	}
	search := make([]uint64, len(keys))
	for i, key := range keys {
		search[i] = t.home(key)
	}
	keys = slices.Clone(keys)
	for probes := uint64(0); len(keys) > 0; probes++ {
		if probes == t.slots*t.ranks {
			return fmt.Errorf("the table with %d slots is full", probes)
		}
		for i, key := range keys {
			rank, disp := t.at(search[i])
			if err := mpi.CompareAndSwap(t.w, key, 0, &t.found[i], rank, disp); err != nil {
				return err
			}
		}
		if err := t.w.FlushAll(); err != nil {
			return err
		}
		left := 0
		for i, key := range keys {
			if f := t.found[i]; f != 0 && f != key { // another key's
				keys[left], search[left] = key, (search[i]+1)%(t.slots*t.ranks)
				left++
				continue
			}
			rank, disp := t.at(search[i])
			if err := mpi.Accumulate(t.w, t.one, rank, disp+1, mpi.OpSum); err != nil {
				return err
			}
		}
		keys, search = keys[:left], search[:left]
	}
	return t.w.FlushAll()
}

// compare says what is wrong with this rank's part, or nothing, and returns how often keys
// were counted in it. It knows the keys of all ranks, and counts them alone.
func (t *table) compare(o options) (counted uint64, wrong string) {
	want := map[uint64]uint64{}
	for rank := range int(t.ranks) {
		for _, key := range o.generate(rank) {
			want[key]++
		}
	}
	for i := 0; i < len(t.part); i += 2 {
		key, count := t.part[i], t.part[i+1]
		if count != want[key] {
			wrong = fmt.Sprintf("key %d is counted %d times, and was inserted %d times", key, count, want[key])
		}
		counted += count
	}
	return counted, wrong
}
