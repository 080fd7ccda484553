package coll

// Barrier ends on no rank before all have begun it.
func Barrier(s *Schedule, t Team) {
	if t.Hosts != nil {
		BarrierHosts(s, t)
		return
	}
	BarrierDissemination(s, t)
}
