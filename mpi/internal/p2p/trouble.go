package p2p

// When a rank of another host is lost, the cause may be the network device of this one.

// lost is the error that a rank is lost, with what is wrong here, if anything is.
func (ep *Endpoint) lost(rank int, why string) *Error {
	e := lost(rank, why)
	if ep.peers[rank].near == nil {
		e.Err = ep.ctx.Trouble()
	}
	return e
}

// loseDevice handles that nothing goes through the network device any more: the ranks
// of other hosts are lost to this one, for good.
func (ep *Endpoint) loseDevice() {
	for rank := range ep.peers {
		if p := &ep.peers[rank]; !p.self && p.near == nil {
			ep.failPeer(rank, ep.lost(rank, "nothing reaches it"))
		}
	}
}
