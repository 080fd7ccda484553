package mpi

// windowLayout is the hint that says how a window is made that ghosts serve, for comparison: as one
// with a lock for each rank, or, as the published system has it, as overlapping windows (see
// rma.layers). All ranks say the same.
const windowLayout = "window_layout"

// The layouts.
const (
	layoutTable       = "table"
	layoutOverlapping = "overlapping"
)

// takeLayout finds out whether what hints say is a layout.
func takeLayout(op string, hints *Info) error {
	if value, _ := hints.Get(windowLayout); value != layoutTable && value != layoutOverlapping {
		return fail(ErrInfoValue, op, "%s is %q; it must be %s or %s", windowLayout, value, layoutTable, layoutOverlapping)
	}
	return nil
}

// windows returns how many windows this one is to be made of: where ranks may be locked one by one,
// as many as a host has ranks.
func (w *Win) windows(c *Comm) int {
	most := int32(1)
	if value, _ := w.hints.Get(windowLayout); value != layoutOverlapping || w.flavor != FlavorAllocate || w.made&epochLock == 0 || c.p.ghosts == nil {
		return 1
	}
	for r := range c.size {
		most = max(most, c.p.ghosts.Client[c.at(r)])
	}
	return int(most)
}

// contexts returns those of overlapping windows, or nil.
func (w *Win) contexts() (all []uint32) {
	if len(w.layers) == 0 {
		return nil
	}
	all = append(all, w.c.context)
	for _, l := range w.layers {
		all = append(all, l.context)
	}
	return all
}

// endLayers gives the contexts of overlapping windows back, if all ranks are done with them.
func (w *Win) endLayers(all bool) {
	for _, l := range w.layers {
		l.release(all)
	}
	w.layers = nil
}
