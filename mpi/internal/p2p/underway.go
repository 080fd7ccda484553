package p2p

// UnderWay returns the requests of a communicator, given by its context, that have not
// come to their end: messages of the program and those of collectives, also the ones
// that nobody will wait for. A later use of one has another Generation.
func (in Inside) UnderWay(context uint32) (all []*Request) {
	for _, r := range in.ep.requests.all {
		if r.state != free && r.state != done && r.entry.Context&^1 == context {
			all = append(all, r)
		}
	}
	return all
}

// Unregister forgets a communicator, if all its members are done with it. Else
// some may still ask what was agreed upon, so the context must not be used again.
func (in Inside) Unregister(context uint32, all bool) { in.ep.groups.unregister(context, all) }
