package main

import (
	"errors"

	"github.com/xwarp/xwarp/mpi"
)

// halo exchanges edges one-sidedly: each rank puts its own into the frames of its
// neighbours, in epochs that no other rank takes part in (Post, Start, Complete, Wait).
type halo struct {
	w, next    *mpi.Win // of block.u and block.next, which take turns
	neighbours *mpi.Group
	frames     [4]mpi.At // of those above, below, to the west, to the east: where this rank's edges go
}

func newHalo(b *block) (h *halo, err error) {
	h = &halo{}
	if h.w, err = mpi.WinCreate(b.comm, b.u, nil); err != nil {
		return nil, err
	}
	if h.next, err = mpi.WinCreate(b.comm, b.next, nil); err != nil {
		return nil, err
	}
	var ranks []int
	for i := range h.frames {
		var around [2]int // before and behind this rank, along a dimension
		if around[0], around[1], err = b.comm.CartShift(i/2, 1); err != nil {
			return nil, err
		}
		if h.frames[i], err = b.frameOf(around[i%2], i); err != nil {
			return nil, err
		}
		if around[i%2] != mpi.ProcNull {
			ranks = append(ranks, around[i%2])
		}
	}
	h.neighbours, err = b.comm.Group().Incl(ranks...)
	return h, err
}

// frameOf returns where in the memory of a neighbour the edge of this rank belongs: the
// neighbour above (0) has it in the last row of its frame, the one below (1) in the first
// one, those to the west (2) and east (3) in the last and the first column.
func (b *block) frameOf(rank, side int) (mpi.At, error) {
	if rank == mpi.ProcNull {
		return mpi.At{Rank: rank}, nil
	}
	_, _, rows, cols, err := b.place(rank)
	if err != nil {
		return mpi.At{}, err
	}
	stride := cols + 2
	at := mpi.At{Rank: rank, Count: 1}
	at.Disp = [...]int{(rows+1)*stride + 1, 1, stride + cols + 1, stride}[side]
	if side < 2 {
		at.Count, at.Type = cols, mpi.TypeDouble
		return at, nil
	}
	if at.Type, err = mpi.TypeVector(rows, 1, stride, mpi.TypeDouble); err != nil {
		return mpi.At{}, err
	}
	return at, at.Type.Commit()
}

// exchange is block.exchange by Put.
func (h *halo) exchange(b *block) error {
	if err := errors.Join(h.w.Post(h.neighbours, 0), h.w.Start(h.neighbours, 0)); err != nil {
		return err
	}
	for i, edge := range b.edges() {
		if err := h.w.Put(edge, h.frames[i]); err != nil {
			return err
		}
	}
	if err := errors.Join(h.w.Complete(), h.w.Wait()); err != nil {
		return err
	}
	h.w, h.next = h.next, h.w // as the block does now
	return nil
}

func (h *halo) close() error { return errors.Join(h.w.Free(), h.next.Free()) }
