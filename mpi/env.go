package mpi

import (
	"os"
	"runtime/debug"
)

// Version returns the version of the standard that this package follows
// (MPI_Get_version).
func Version() (version, subversion int) { return 4, 1 }

// LibraryVersion names the library and its version, for people
// (MPI_Get_library_version).
func LibraryVersion() string {
	const name, path = "xwarp", "github.com/xwarp/xwarp"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			return name + " " + m.Version
		}
	}
	return name
}

// ProcessorName names the machine that this process runs on
// (MPI_Get_processor_name): its host name, which a namespace of a test bed shares
// with the machine.
func (p *Proc) ProcessorName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", &Error{Class: ErrOther, Op: "ProcessorName", Rank: -1, Err: err}
	}
	return name, nil
}

// Wtime returns the seconds since some time in the past, the same for as long as the
// process lives (MPI_Wtime). Clocks of ranks have nothing to do with one another
// (MPI_WTIME_IS_GLOBAL is false). In a simulation it is simulated time.
func (p *Proc) Wtime() float64 { return float64(p.ep.Engine().Clock().Now()) * p.Wtick() }

// Wtick returns the seconds between two readings of the clock that differ
// (MPI_Wtick).
func (p *Proc) Wtick() float64 { return 1e-9 }

// Finalized reports whether Finalize was called (MPI_Finalized). Any goroutine may
// ask.
func (p *Proc) Finalized() bool { return p.finalized.Load() }

// HWResourceInfo tells which pieces of hardware this process is bound to
// (MPI_Get_hw_resource_info): the keys are the values that SplitTypeWithInfo knows
// for mpi_hw_resource_type, and the value of each is "true" or "false".
func (p *Proc) HWResourceInfo() *Info {
	i := &Info{}
	for _, kind := range hwResources {
		value := "false"
		if kind.color(0, 0) != Undefined {
			value = "true"
		}
		i.pairs = append(i.pairs, infoPair{kind.name, value})
	}
	return i
}
