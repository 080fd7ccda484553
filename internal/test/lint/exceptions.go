package lint

// TooLong are the files and functions that are longer than the limits. The
// list only shrinks: a test fails when an entry is no longer needed, or when
// the length that it names is not today's.
var TooLong = map[string]int{}

// TooManyFields and TooManyMethods are the types that are larger than the limits, likewise;
// 0 is for those that may have any number.
var (
	TooManyFields = map[string]int{
		"internal/test/check.Op":     28,
		"internal/test/check.host":   35,
		"internal/job/launch.Config": 45,
	}
	TooManyMethods = map[string]int{
		"internal/test/check.Model":  45,
		"internal/test/check.host":   51,
		"internal/test/conform.host": 45,
		"mpi.Comm":                   0, // MPI's public face
		"mpi.Proc":                   0, // likewise
		"mpi.Win":                    0, // likewise
		"mpi.call":                   75,
		"mpi/internal/coll.Schedule": 46,
		"abi/capi.Lib":               0, // all that C functions do begins there
	}
)

// Persons are the packages, or with /... all below a folder, with comments whose subject is a
// person. The list only shrinks.
var Persons = []string{"internal/test/..."}

// ControlPackages are those whose control calls name their errors. Errors of mpi have classes,
// which the standard names for each call.
var ControlPackages = []string{"bpf", "verbs", "verbs/device", "xdp", "xdp/asavie"}
