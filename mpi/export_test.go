package mpi

import "errors"

// ServeAsGhost lets a process that is not among the ranks of its job be a ghost until the job is
// over, and ends it.
func ServeAsGhost(p *Proc) error { return errors.Join(p.serve(), p.close()) }
