package capi

import "strings"

// The last category has the performance variables, the others are groups of control variables.
const (
	counters     = "Counters"
	countersText = "what the process has done, and what it goes by"
)

func (t *tools) categories() []string {
	var names []string
	for _, g := range t.groups {
		names = append(names, g.Title)
	}
	return append(names, counters)
}

// controlsIn are the indices of the control variables of a category.
func (t *tools) controlsIn(category int) (list []int) {
	for i, c := range t.controls {
		if c.group == category {
			list = append(list, i)
		}
	}
	return list
}

// countersIn are those of the performance variables.
func (t *tools) countersIn(category int) (list []int) {
	t.count()
	if category == len(t.groups) {
		for i := range t.counters {
			list = append(list, i)
		}
	}
	return list
}

// inCategory calls f if there is such a category.
func (l *Lib) inCategory(category int, f func(t *tools, name string)) error {
	return l.inTools(func(t *tools) error {
		name, err := indexed(t.categories(), category)
		if err == nil {
			f(t, *name)
		}
		return err
	})
}

// TCategoryGetNum is MPI_T_category_get_num.
func TCategoryGetNum(l *Lib, n Ints) error {
	return l.inTools(func(t *tools) error {
		n.set(0, len(t.categories()))
		return nil
	})
}

// TCategoryGetInfo is MPI_T_category_get_info.
func TCategoryGetInfo(l *Lib, category int, name Text, nameLen Ints, desc Text, descLen, controls, performance, categories Ints) error {
	return l.inCategory(category, func(t *tools, title string) {
		doc := countersText
		if category < len(t.groups) {
			doc = "variables of the environment: " + strings.ToLower(title)
		}
		setText(name, nameLen, title)
		setText(desc, descLen, doc)
		controls.set(0, len(t.controlsIn(category)))
		performance.set(0, len(t.countersIn(category)))
		categories.set(0, 0)
	})
}

// TCategoryGetIndex is MPI_T_category_get_index.
func TCategoryGetIndex(l *Lib, name string, index Ints) error {
	return l.inTools(func(t *tools) error {
		return named(t.categories(), func(title *string) bool { return *title == name }, index)
	})
}

// TCategoryGetCvars is MPI_T_category_get_cvars.
func TCategoryGetCvars(l *Lib, category, room int, indices Ints) error {
	return l.inCategory(category, func(t *tools, _ string) { indices.setAll(t.controlsIn(category), room) })
}

// TCategoryGetPvars is MPI_T_category_get_pvars.
func TCategoryGetPvars(l *Lib, category, room int, indices Ints) error {
	return l.inCategory(category, func(t *tools, _ string) { indices.setAll(t.countersIn(category), room) })
}

// TCategoryGetCategories is MPI_T_category_get_categories: none has another one.
func TCategoryGetCategories(l *Lib, category, _ int, _ Ints) error {
	return l.inCategory(category, func(*tools, string) {})
}

// TCategoryGetNumEvents is MPI_T_category_get_num_events.
func TCategoryGetNumEvents(l *Lib, category int, n Ints) error {
	return l.inCategory(category, func(*tools, string) { n.set(0, 0) })
}

// TCategoryGetEvents is MPI_T_category_get_events.
func TCategoryGetEvents(l *Lib, category, _ int, _ Ints) error {
	return l.inCategory(category, func(*tools, string) {})
}

// TCategoryChanged is MPI_T_category_changed: it grows with the number of variables.
func TCategoryChanged(l *Lib, number Ints) error {
	return l.inTools(func(t *tools) error {
		t.count()
		number.set(0, len(t.counters))
		return nil
	})
}
