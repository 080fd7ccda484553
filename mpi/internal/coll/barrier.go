package coll

// Barrier ends on no rank before all have begun it.
func Barrier(s *Schedule, t Team) {
	switch {
	case t.Hosts != nil:
		BarrierHosts(s, t)
	case t.near(0):
		BarrierSlots(s, t)
	default:
		BarrierDissemination(s, t)
	}
}
