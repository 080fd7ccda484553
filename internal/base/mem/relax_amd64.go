package mem

// Relax is what a loop does between two looks at memory that another core is about to change. Without it
// the processor has looked ahead many times when that comes, and throws all of it away.
func Relax()
