package trace

// Shifts returns what is to be added to the times of each rank so that no message
// arrives before it was sent: how far apart the clocks of the hosts are is read
// from the messages between them. If the fastest message one way seems to take a
// and the fastest back b, the clocks are (a-b)/2 apart, as NTP has it (RFC 5905,
// section 8), and wrong by less than half of the time there and back. Hosts are
// reached from the first one over those that messages went to and fro between;
// one that is not reached, and ranks of one host among themselves, are taken to
// have the same clock. Ranks are those of one host by Report.Host.
func Shifts(reports []*Report) []int64 {
	type way struct{ from, to string }
	fastest := map[way]int64{}
	at := map[message]int64{}
	hosts := map[int32]string{}
	for _, r := range reports {
		hosts[int32(r.Rank)] = r.Host
	}
	each(reports, MessageSent, func(r *Report, e *CallEvent) { at[r.message(e)] = r.time(e.Begin, 0) })
	each(reports, MessageGot, func(r *Report, e *CallEvent) {
		m := r.message(e)
		begun, ok := at[m]
		w := way{hosts[m.from], hosts[m.to]}
		if !ok || w.from == w.to {
			return
		}
		took := r.time(e.Begin, 0) - begun
		if least, ok := fastest[w]; !ok || took < least {
			fastest[w] = took
		}
	})
	shift := map[string]int64{}
	if len(reports) > 0 {
		shift[reports[0].Host] = 0
	}
	for found := true; found; {
		found = false
		for w, out := range fastest {
			back, both := fastest[way{w.to, w.from}]
			base, known := shift[w.from]
			if _, done := shift[w.to]; done || !both || !known {
				continue
			}
			shift[w.to] = base - (out-back)/2
			found = true
		}
	}
	all := make([]int64, len(reports))
	for i, r := range reports {
		all[i] = shift[r.Host]
	}
	return all
}
