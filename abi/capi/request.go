package capi

import "github.com/xwarp/xwarp/mpi"

// request is a request of the program.
type request struct {
	mpi.Request
	comm Handle // whose error handler gets its errors
}
